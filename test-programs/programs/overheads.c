/* What constructs cost, in nanoseconds, for who compares a runtime with a tool
 * and without.
 *
 * For each construct it prints
 *
 *   NAME NANOSECONDS COUNT
 *
 * and waits for a byte on standard input: the time of one construct as a thread
 * sees it, which is the median of REPETITIONS loops of which each has had the
 * same loop without the construct taken off; and how often each thread has
 * executed the construct since the line before, in loops that were not measured
 * as well.  Both threads do the same at the same time. */
#define _GNU_SOURCE
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 2, REPETITIONS = 151, FAR_APART = 256 };

/* One for each thread, in cache lines of their own, and one for all. */
static struct {
    omp_lock_t lock;
    char padding[FAR_APART];
} locks[THREADS + 1];

static double now(void) {
    struct timespec time;
    if (clock_gettime(CLOCK_MONOTONIC, &time) != 0)
        abort();
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* Keeps a loop from being taken away. */
static inline void nothing(void) { __asm__ volatile("" ::: "memory"); }

static void no_parallel(long count) {
    for (long n = 0; n < count; n++)
        nothing();
}

static void parallel(long count) {
    for (long n = 0; n < count; n++) {
#pragma omp parallel num_threads(THREADS)
        nothing();
    }
}

/* What the others are compared with: the region around them and the loop in it. */
static void no_construct(long count) {
#pragma omp parallel num_threads(THREADS)
    for (long n = 0; n < count; n++)
        nothing();
}

static void barrier(long count) {
#pragma omp parallel num_threads(THREADS)
    for (long n = 0; n < count; n++) {
        nothing();
#pragma omp barrier
    }
}

/* Each thread creates as many; who executes them is the runtime's affair. */
static void task(long count) {
#pragma omp parallel num_threads(THREADS)
    for (long n = 0; n < count; n++) {
#pragma omp task
        nothing();
    }
}

static void lock(long count) {
#pragma omp parallel num_threads(THREADS)
    {
        omp_lock_t *own = &locks[omp_get_thread_num()].lock;
        for (long n = 0; n < count; n++) {
            omp_set_lock(own);
            nothing();
            omp_unset_lock(own);
        }
    }
}

static void contended(long count) {
#pragma omp parallel num_threads(THREADS)
    for (long n = 0; n < count; n++) {
        omp_set_lock(&locks[THREADS].lock);
        nothing();
        omp_unset_lock(&locks[THREADS].lock);
    }
}

static int ascending(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static void measure(const char *name, void (*construct)(long), void (*reference)(long), long count) {
    double samples[REPETITIONS];
    char byte;
    construct(count);
    for (int n = 0; n < REPETITIONS; n++) {
        double began = now();
        construct(count);
        double between = now();
        reference(count);
        samples[n] = (between - began - (now() - between)) / (double)count;
    }
    qsort(samples, REPETITIONS, sizeof *samples, ascending);
    printf("%s %.2f %ld\n", name, samples[REPETITIONS / 2], count * (REPETITIONS + 1));
    fflush(stdout);
    if (read(0, &byte, 1) != 1)
        exit(1);
}

int main(void) {
    omp_set_dynamic(0);
    for (int n = 0; n <= THREADS; n++)
        omp_init_lock(&locks[n].lock);
    /* The runtime and its threads are there before anything is counted. */
    no_construct(1);
    measure("nothing", no_construct, no_construct, 1000);
    measure("parallel", parallel, no_parallel, 400);
    measure("barrier", barrier, no_construct, 1000);
    measure("task", task, no_construct, 1000);
    measure("lock", lock, no_construct, 3000);
    measure("contended", contended, no_construct, 1000);
    printf("done\n");
    return 0;
}
