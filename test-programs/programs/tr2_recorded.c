/* A program that counts what it does, in constructs that a runtime of Technical Report 2 has and clang calls by their old names.
 *
 *   did REGIONS LOOPS SINGLES TASKS CRITICALS BARRIERS MASTERS NESTED
 *          of all threads; loops and barriers that a thread took part in, tasks created, nest locks let go of but once
 *
 * and `ready`.  One byte on standard input lets it end. */
#include <omp.h>
#include <stdatomic.h>
#include <stdio.h>

enum { THREADS = 3, TASKS = 4 };

static atomic_int regions, loops, singles, tasks, criticals, barriers, masters, nested, sum;
static omp_nest_lock_t lock;

static void work(void) {
#pragma omp for
    for (int i = 0; i < 6; i++)
        sum++;
    loops++;
#pragma omp single
    {
        singles++;
        for (int i = 0; i < TASKS; i++) {
#pragma omp task
            sum++;
            tasks++;
        }
    }
#pragma omp critical(counted)
    criticals++;
    omp_set_nest_lock(&lock);
    omp_set_nest_lock(&lock);
    omp_unset_nest_lock(&lock);
    omp_unset_nest_lock(&lock);
    nested++;
#pragma omp barrier
    barriers++;
#pragma omp master
    masters++;
}

int main(void) {
    omp_set_dynamic(0);
    omp_init_nest_lock(&lock);
#pragma omp parallel num_threads(THREADS)
    work();
    regions++;
    printf("did %d %d %d %d %d %d %d %d\nready\n", regions, loops, singles, tasks, criticals, barriers, masters, nested);
    fflush(stdout);
    getchar();
    printf("done\n");
    return 0;
}
