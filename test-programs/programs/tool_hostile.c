/* What programs do that is hard for a library in front of libgomp.  The first argument says what.  The program prints what
 * happened, the same with such a library and without. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <omp.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

static int counted;
static void count(void) { __atomic_fetch_add(&counted, 1, __ATOMIC_RELAXED); }

static void fails(const char *what)
{
    perror(what);
    exit(9);
}

/* A bit of everything, by a team of this size. */
static int works(int threads)
{
    int sum = 0;
    omp_lock_t lock;
    omp_init_lock(&lock);
#pragma omp parallel num_threads(threads) reduction(+ : sum)
    {
#pragma omp for schedule(dynamic) nowait
        for (int i = 0; i < 20; i++)
            sum += i;
#pragma omp barrier
        omp_set_lock(&lock);
        sum++;
        omp_unset_lock(&lock);
#pragma omp single
        for (int i = 0; i < 5; i++) {
#pragma omp task
            count();
        }
    }
    omp_destroy_lock(&lock);
    return sum;
}

static void says(const char *what, int number)
{
    printf("%s %d\n", what, number);
    fflush(stdout);
}

/* Another program takes the place of this one, by a worker, while others wait at a barrier, for a lock and for a task. */
static void executes(const char *self)
{
    omp_lock_t lock;
    sem_t is_set;
    sem_init(&is_set, 0, 0);
    omp_init_lock(&lock);
    says("before exec", works(4));
#pragma omp parallel num_threads(4)
    {
        if (omp_get_thread_num() == 1) {
            omp_set_lock(&lock);
            sem_post(&is_set);
            execl(self, self, "after", (char *)NULL);
            fails("exec");
        }
        if (omp_get_thread_num() == 2) {
            sem_wait(&is_set);
            omp_set_lock(&lock);
        }
#pragma omp barrier
    }
}

/* The program ends in a worker's task, while others wait. */
static void ends(void)
{
    says("before exit", works(4));
#pragma omp parallel num_threads(4)
    {
        if (omp_get_thread_num() == 3) {
#pragma omp task if (0)
            exit(5);
        }
#pragma omp barrier
    }
}

/* A child begins inside a region, by a worker.  It executes OpenMP without the other threads, and ends. */
static void forks(int by_exit)
{
    int status = 0;
    says("before fork", works(3));
#pragma omp parallel num_threads(3)
    {
#pragma omp critical
        if (omp_get_thread_num() == 2) {
            pid_t child = fork();
            if (child == 0) {
                omp_lock_t lock;
                omp_init_lock(&lock);
                omp_set_lock(&lock);
                omp_unset_lock(&lock);
#pragma omp task if (0)
                count();
                if (by_exit)
                    exit(6);
                _exit(6);
            }
            if (child < 0 || waitpid(child, &status, 0) != child)
                fails("fork");
        }
#pragma omp barrier
    }
    says("child", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    says("after fork", works(3));
}

/* A library with a region is loaded, called and unloaded. */
static void unloads(const char *module)
{
    int sum = 0;
    for (int round = 0; round < 50; round++) {
        void *library = dlopen(module, RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            exit(9);
        }
        int (*region)(int);
        *(void **)&region = dlsym(library, "region");
        if (region == NULL)
            fails("dlsym");
        sum += region(round % 4 + 1);
        dlclose(library);
        if (dlopen(module, RTLD_NOW | RTLD_NOLOAD) != NULL)
            says("is still loaded", round);
    }
    says("unloaded", sum);
}

static jmp_buf inside, outside;
static volatile int jumped;
static void jumps_inside(void)
{
    works(1);
    longjmp(inside, 1);
}

/* Jumps over calls of the runtime: inside a region, and out of regions of one thread, which libgomp then takes for open. */
static void jumps(void)
{
#pragma omp parallel num_threads(2)
    {
#pragma omp barrier
#pragma omp master
        for (jumped = 0; jumped < 100; jumped++)
            if (setjmp(inside) == 0)
                jumps_inside();
#pragma omp barrier
    }
    says("jumped inside", counted);
    for (jumped = 0; jumped < 3; jumped++) {
        if (setjmp(outside) == 0) {
#pragma omp parallel num_threads(1)
            {
#pragma omp critical(other)
                count();
                longjmp(outside, 1);
            }
        }
        says("level", omp_get_level());
        says("works", works(2));
    }
}

/* Threads of the program have a region each, one after the other and many at once. */
static void *has_regions(void *rounds)
{
    for (int round = 0; round < *(int *)rounds; round++) {
#pragma omp parallel num_threads(2)
        count();
    }
    return NULL;
}
static void threads(void)
{
    enum { AT_ONCE = 10, GROUPS = 100 };
    int rounds = 10;
    for (int group = 0; group < GROUPS; group++) {
        pthread_t thread[AT_ONCE];
        for (int n = 0; n < AT_ONCE; n++)
            if (pthread_create(&thread[n], NULL, has_regions, &rounds) != 0)
                fails("pthread_create");
        for (int n = 0; n < AT_ONCE; n++)
            pthread_join(thread[n], NULL);
    }
    says("executed", counted);
}

/* Teams of two inside each other. */
static int deepest;
static void nests(int level)
{
#pragma omp parallel num_threads(2)
    {
        count();
#pragma omp master
        {
            if (level == 64) {
                deepest = omp_get_active_level();
                works(1);
            } else {
                nests(level + 1);
            }
        }
    }
}

/* With how many rights the program runs, whether there is a library in front of libgomp, and whether it has a tool. */
static void asks(void)
{
    int (*control)(int, int, void *);
    works(2);
    *(void **)&control = dlsym(RTLD_DEFAULT, "omp_control_tool");
    says("secure", getauxval(AT_SECURE) != 0);
    says("library", dlsym(RTLD_DEFAULT, "libgomp_ompt_layout") != NULL);
    says("tool", control != NULL && control(1, 0, NULL) != -2);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    omp_set_dynamic(0);
    omp_set_max_active_levels(1000);
    if (strcmp(what, "exec") == 0)
        executes(argv[0]);
    else if (strcmp(what, "after") == 0)
        says("after exec", works(4));
    else if (strcmp(what, "exit") == 0)
        ends();
    else if (strcmp(what, "fork") == 0)
        forks(0);
    else if (strcmp(what, "fork-exit") == 0)
        forks(1);
    else if (strcmp(what, "dlclose") == 0 && argc > 2)
        unloads(argv[2]);
    else if (strcmp(what, "longjmp") == 0)
        jumps();
    else if (strcmp(what, "threads") == 0)
        threads();
    else if (strcmp(what, "nested") == 0) {
        nests(1);
        says("levels", deepest);
        says("executed", counted);
    } else if (strcmp(what, "asks") == 0)
        asks();
    else
        return 8;
    return 0;
}
