// What may go wrong for a library that stands between a program of C++ and its runtime.  Prints what happened.
#include <cstdio>
#include <cstdlib>
#include <omp.h>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

static int copies, destroyed, caught;

struct Counted {
    std::string text;
    explicit Counted(const char *text) : text(text) {}
    Counted(const Counted &other) : text(other.text) { __atomic_fetch_add(&copies, 1, __ATOMIC_RELAXED); }
    ~Counted() { __atomic_fetch_add(&destroyed, 1, __ATOMIC_RELAXED); }
};

static void throws(int number)
{
    if (number % 2)
        throw std::runtime_error("odd");
}

// Exceptions that the construct catches where they are thrown.
static void exceptions()
{
#pragma omp parallel for num_threads(3) schedule(dynamic)
    for (int i = 0; i < 30; i++) {
        try {
#pragma omp critical
            {
                try {
                    throws(i);
                } catch (const std::runtime_error &) {
                    caught++;
                }
            }
        } catch (...) {
            std::abort();
        }
    }
#pragma omp parallel num_threads(3)
#pragma omp single
    for (int i = 0; i < 10; i++) {
#pragma omp task firstprivate(i)
        try {
            throws(i);
        } catch (const std::runtime_error &) {
            __atomic_fetch_add(&caught, 1, __ATOMIC_RELAXED);
        }
    }
}

// A destructor runs when a thread ends by pthread_exit after a region of its own.
struct Ends {
    ~Ends() { __atomic_fetch_add(&destroyed, 1, __ATOMIC_RELAXED); }
};
static void *ends_early(void *)
{
    Ends guard;
#pragma omp parallel num_threads(1)
    {
        Ends inner;
    }
    pthread_exit(nullptr);
}

int main()
{
    exceptions();
    int length = 0;
    {
        Counted counted("twelve bytes");
#pragma omp parallel num_threads(3)
#pragma omp single
        for (int i = 0; i < 8; i++) {
#pragma omp task firstprivate(counted)
            __atomic_fetch_add(&length, int(counted.text.size()), __ATOMIC_RELAXED);
        }
#pragma omp parallel num_threads(2)
#pragma omp single
#pragma omp taskloop num_tasks(4) firstprivate(counted)
        for (int i = 0; i < 12; i++)
            __atomic_fetch_add(&length, int(counted.text.size()), __ATOMIC_RELAXED);
    }
    // Every copy has been destroyed.
    std::printf("caught %d, length %d, left %d\n", caught, length, copies + 1 - destroyed);
    std::vector<std::thread> threads;
    int regions = 0;
    for (int n = 0; n < 50; n++)
        threads.emplace_back([&regions] {
            for (int round = 0; round < 20; round++) {
#pragma omp parallel num_threads(2)
                __atomic_fetch_add(&regions, 1, __ATOMIC_RELAXED);
            }
        });
    for (std::thread &thread : threads)
        thread.join();
    std::printf("regions %d\n", regions);
    destroyed = 0;
    pthread_t early;
    if (pthread_create(&early, nullptr, ends_early, nullptr) == 0)
        pthread_join(early, nullptr);
    std::printf("destructors %d\n", destroyed);
    // Regions inside regions, as deep as they go.
    omp_set_max_active_levels(64);
    struct {
        int deepest = 0;
        void open(int level)
        {
#pragma omp parallel num_threads(level < 3 ? 2 : 1)
            {
#pragma omp master
                {
                    deepest = omp_get_level();
                    if (level < 63)
                        open(level + 1);
                }
            }
        }
    } nest;
    nest.open(0);
    std::printf("levels %d\n", nest.deepest);
    std::fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        std::exit(3);
    int status = 0;
    waitpid(child, &status, 0);
    std::printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    std::fflush(stdout);
    // The end of the program inside a region, while other threads wait.
#pragma omp parallel num_threads(2)
    {
#pragma omp master
        std::exit(0);
#pragma omp barrier
    }
}
