/* A program without OpenMP that loads one runtime after another, and enters
 * each through the functions GCC's code calls.  In the first phase it has none;
 * in the second a team of three of the library named by the first argument; in
 * the third, if there is a second argument, a team of two of that library, while
 * the threads of the first are idle.  The numbers of threads are in the names
 * of their roles. */
#include "truth.h"

#include <dlfcn.h>

struct runtime {
    int (*thread_num)(void);
    int (*num_threads)(void);
    void (*barrier)(void);
    void (*parallel)(void (*)(void *), void *, unsigned, unsigned);
};

static void *function_of(void *library, const char *name) {
    void *function = dlsym(library, name);
    if (function == NULL)
        truth_fail(name);
    return function;
}

static void load(struct runtime *runtime, const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (library == NULL)
        truth_fail(dlerror());
    *(void **)&runtime->thread_num = function_of(library, "omp_get_thread_num");
    *(void **)&runtime->num_threads = function_of(library, "omp_get_num_threads");
    *(void **)&runtime->barrier = function_of(library, "GOMP_barrier");
    *(void **)&runtime->parallel = function_of(library, "GOMP_parallel");
}

static void body(void *argument) {
    static char roles[3][16];
    const struct runtime *runtime = argument;
    int me = runtime->thread_num(), size = runtime->num_threads();
    snprintf(roles[me], sizeof roles[me], "member %d", me);
    truth_note_with(roles[me], me == size - 1 ? TRUTH_PIPE : TRUTH_BARRIER, NULL, TRUTH_NO_BODY, 0);
    if (me == size - 1)
        truth_ready("loads", size);
    runtime->barrier();
    truth_step();
}

int main(int argc, char **argv) {
    static struct runtime runtimes[2];
    truth_init();
    truth_note_with("coordinator", TRUTH_PIPE, NULL, TRUTH_NO_BODY, 0);
    truth_ready("loads", 1);
    for (int n = 0; n < 2 && n + 1 < argc; n++) {
        truth_forget();
        load(&runtimes[n], argv[n + 1]);
        runtimes[n].parallel(body, &runtimes[n], 3 - n, 0);
    }
    truth_done();
    return 0;
}
