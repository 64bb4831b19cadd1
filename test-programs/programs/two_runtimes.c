/* Two OpenMP runtimes in one process, each with a team of its own: the one the
 * program is linked with, and the library named by the first argument, loaded
 * privately and entered through the functions GCC's code calls, as it happens
 * with Python wheels that bring their own copy.  The API of the second one is
 * asked by hand; its answers are in the names of the roles.
 * two_runtimes LIBRARY [N]: the program's own team has N threads, or 2; the other one has 3. */
#include "truth.h"

#include <dlfcn.h>

static int own_threads;
static int (*other_thread_num)(void);
static void (*other_barrier)(void);
static void (*other_parallel)(void (*)(void *), void *, unsigned, unsigned);

static void other_body(void *unused) {
    static char roles[3][16];
    int me = other_thread_num();
    (void)unused;
    snprintf(roles[me], sizeof roles[me], "other %d", me);
    truth_note_with(roles[me], me == 1 ? TRUTH_PIPE : TRUTH_BARRIER, NULL, TRUTH_NO_BODY, 0);
    if (me == 1)
        truth_hold();
    other_barrier();
    truth_step();
}

static void *other_thread(void *unused) {
    other_parallel(other_body, NULL, 3, 0);
    return unused;
}

TRUTH_MARKER void own_body(void) {
    if (omp_get_thread_num() == 1) {
        truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, own_body));
        truth_ready("two_runtimes", 3 + own_threads);
        truth_release();
    } else {
        truth_note("own waiter", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, own_body));
    }
#pragma omp barrier
    truth_step();
}

static void *function_of(void *library, const char *name) {
    void *function = dlsym(library, name);
    if (function == NULL)
        truth_fail(name);
    return function;
}

int main(int argc, char **argv) {
    pthread_t thread;
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) : NULL;
    own_threads = argc > 2 ? atoi(argv[2]) : 2;
    truth_init();
    if (own_threads < 2 || own_threads > TRUTH_MAX_THREADS - 3)
        truth_fail("N is too small or too large");
    if (library == NULL)
        truth_fail("the second runtime cannot be loaded");
    *(void **)&other_thread_num = function_of(library, "omp_get_thread_num");
    *(void **)&other_barrier = function_of(library, "GOMP_barrier");
    *(void **)&other_parallel = function_of(library, "GOMP_parallel");
    if (pthread_create(&thread, NULL, other_thread, NULL) != 0)
        truth_fail("pthread_create");
#pragma omp parallel num_threads(own_threads)
    {
        own_body();
        TRUTH_KEEP_FRAME();
    }
    if (pthread_join(thread, NULL) != 0)
        truth_fail("pthread_join");
    truth_done();
    return 0;
}
