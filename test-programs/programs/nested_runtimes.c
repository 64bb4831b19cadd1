/* Regions of three OpenMP runtimes nested in each other: in the team of the
 * runtime the program is linked with, thread 1 opens a region of the library
 * named by the first argument, and thread 2 of that region one of the library
 * named by the second.  Roles say where a thread is: "own 1, a 0" is thread 1 of
 * the outermost team and thread 0 of the next. */
#include "truth.h"

#include <dlfcn.h>

struct other {
    int (*thread_num)(void);
    void (*barrier)(void);
    void (*parallel)(void (*)(void *), void *, unsigned, unsigned);
};

static struct other a, b;

static void b_body(void *unused) {
    static const char *const roles[] = {"a 2, b 0", "b 1", "b 2", "b 3"};
    int me = b.thread_num();
    (void)unused;
    truth_note_with(roles[me], me == 1 ? TRUTH_PIPE : TRUTH_BARRIER, NULL, TRUTH_NO_BODY, 0);
    if (me == 1)
        truth_hold();
    b.barrier();
    truth_step();
}

static void a_body(void *unused) {
    static const char *const roles[] = {"own 1, a 0", "a 1"};
    int me = a.thread_num();
    (void)unused;
    if (me == 2) {
        b.parallel(b_body, NULL, 4, 0);
    } else {
        truth_note_with(roles[me], TRUTH_BARRIER, NULL, TRUTH_NO_BODY, 0);
        a.barrier();
        truth_step();
        return;
    }
    a.barrier();
}

TRUTH_MARKER void own_body(void) {
    if (omp_get_thread_num() == 0) {
        truth_note("own 0", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, own_body));
        truth_ready("nested_runtimes", 7);
        truth_release();
    } else {
        a.parallel(a_body, NULL, 3, 0);
    }
}

static struct other load(const char *path) {
    struct other other;
    void *library = path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) : NULL;
    if (library == NULL)
        truth_fail("a runtime cannot be loaded");
    *(void **)&other.thread_num = dlsym(library, "omp_get_thread_num");
    *(void **)&other.barrier = dlsym(library, "GOMP_barrier");
    *(void **)&other.parallel = dlsym(library, "GOMP_parallel");
    if (other.thread_num == NULL || other.barrier == NULL || other.parallel == NULL)
        truth_fail("a library is no OpenMP runtime");
    return other;
}

int main(int argc, char **argv) {
    truth_init();
    a = load(argc > 1 ? argv[1] : NULL);
    b = load(argc > 2 ? argv[2] : NULL);
#pragma omp parallel num_threads(2)
    {
        own_body();
        TRUTH_KEEP_FRAME();
    }
    truth_done();
    return 0;
}
