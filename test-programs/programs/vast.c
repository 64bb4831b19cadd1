/* vast N GIB DIRECTORY COUNT: as "many", N threads of one region at a barrier,
 * the last one missing, in a process that is large otherwise.  It has a mapping
 * of GIB gigabytes of which one page in 16 megabytes was written to, so that a
 * core of it is mostly holes.  It has loaded the libraries DIRECTORY/0.so to
 * DIRECTORY/COUNT-1.so.  For measuring what the size of a core costs. */
#include <dlfcn.h>
#include <sys/mman.h>

#include "truth.h"

enum { APART = 16 << 20 };

static int team;

TRUTH_MARKER void member_body(void) {
    if (omp_get_thread_num() == team - 1) {
        truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, member_body));
        truth_ready("vast", team);
        truth_release();
    } else {
        truth_note("waiter", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, member_body));
    }
#pragma omp barrier
    truth_step();
}

static void map_and_touch(size_t size) {
    if (size == 0)
        return;
    char *start = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED)
        truth_fail("mmap");
    /* A huge page would be two megabytes of the core. */
    madvise(start, size, MADV_NOHUGEPAGE);
    for (size_t at = 0; at < size; at += APART)
        start[at] = 1;
}

static void load(const char *directory, int count) {
    for (int i = 0; i < count; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%d.so", directory, i);
        if (!dlopen(path, RTLD_NOW)) {
            fprintf(stderr, "%s\n", dlerror());
            exit(2);
        }
    }
}

int main(int argc, char **argv) {
    team = argc == 5 ? atoi(argv[1]) : 0;
    if (team < 2 || team > TRUTH_MAX_THREADS) {
        fprintf(stderr, "usage: vast N GIB DIRECTORY COUNT, with N from 2 to %d\n", (int)TRUTH_MAX_THREADS);
        return 2;
    }
    truth_init();
    map_and_touch((size_t)atoi(argv[2]) << 30);
    load(argv[3], atoi(argv[4]));
#pragma omp parallel num_threads(team)
    {
        member_body();
        TRUTH_KEEP_FRAME();
    }
    truth_done();
    return 0;
}
