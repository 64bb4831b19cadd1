// Exceptions that leave functions which libgomp calls.  The first argument says how.  Code of other compilers than GCC's calls
// libgomp like this program: it has no end of the program where an exception leaves a region.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <omp.h>
#include <stdexcept>
#include <unistd.h>

extern "C" {
void GOMP_parallel(void (*)(void *), void *, unsigned, unsigned);
void GOMP_teams_reg(void (*)(void *), void *, unsigned, unsigned, unsigned);
}

static int destroyed, caught;
struct Guard {
    ~Guard() { destroyed++; }
};

static void body(void *)
{
    Guard guard;
    throw std::runtime_error("from a body");
}
template <class Call> static void catches(const char *from, Call call)
{
    Guard guard;
    try {
        call();
    } catch (const std::exception &thrown) {
        caught++;
        std::printf("caught %s, from %s, level %d\n", thrown.what(), from, omp_get_level());
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    long word = 0;
    if (std::strcmp(what, "out") == 0) {
        for (int round = 0; round < 100; round++) {
            catches("a region", [&] { GOMP_parallel(body, &word, 1, 0); });
            catches("a league", [&] { GOMP_teams_reg(body, &word, 1, 0, 0); });
        }
        int members = 0;
#pragma omp parallel num_threads(2) reduction(+ : members)
        members++;
        std::printf("caught %d, destroyed %d, members %d\n", caught, destroyed, members);
    } else if (std::strcmp(what, "terminate") == 0) {
        std::set_terminate([] {
            std::printf("terminated\n");
            std::fflush(stdout);
            _exit(7);
        });
#pragma omp parallel num_threads(2)
        {
#pragma omp barrier
#pragma omp master
            throw std::runtime_error("out of a construct");
        }
    }
}
