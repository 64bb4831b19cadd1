/* regions N T: opens N parallel regions of T threads, one after the other, and
 * prints the nanoseconds that took, without the first region, which starts the
 * threads.  Each member calls visit() once in each region.  For measuring what
 * a debugger costs a program. */
#include "truth.h"

TRUTH_MARKER void visit(void) {
    TRUTH_KEEP_FRAME();
}

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void open_regions(long count, int threads) {
    for (long i = 0; i < count; i++) {
#pragma omp parallel num_threads(threads)
        visit();
    }
}

int main(int argc, char **argv) {
    long count = argc == 3 ? atol(argv[1]) : 0;
    int threads = argc == 3 ? atoi(argv[2]) : 0;
    if (count < 1 || threads < 1) {
        fprintf(stderr, "usage: regions N T\n");
        return 2;
    }
    open_regions(1, threads);
    long long began = now();
    open_regions(count, threads);
    printf("regions took %lld ns\n", now() - began);
    return 0;
}
