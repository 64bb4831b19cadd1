/* Two threads come to locks and constructs, each as often as the last line says. */
#include <omp.h>
#include <stdio.h>

enum { THREADS = 2, ROUNDS = 3 };
static omp_lock_t lock;
static omp_nest_lock_t nest_lock;
static int locks, criticals, taskwaits, worksharings, singles, sink;

static void count(int *counter) {
#pragma omp atomic
    ++*counter;
}

static void round_of_constructs(void) {
    count(&locks);
    omp_set_lock(&lock);
    omp_unset_lock(&lock);
    count(&locks);
    omp_set_nest_lock(&nest_lock);
    omp_unset_nest_lock(&nest_lock);
    count(&criticals);
#pragma omp critical
    ++sink;
    count(&criticals);
#pragma omp critical(named)
    ++sink;
#pragma omp task
    count(&sink);
    count(&taskwaits);
#pragma omp taskwait
    count(&worksharings);
#pragma omp for schedule(dynamic)
    for (int i = 0; i < 8; i++)
        count(&sink);
    count(&worksharings);
#pragma omp sections
    {
        count(&sink);
#pragma omp section
        count(&sink);
    }
    count(&singles);
#pragma omp single
    ++sink;
}

int main(void) {
    omp_init_lock(&lock);
    omp_init_nest_lock(&nest_lock);
#pragma omp parallel num_threads(THREADS)
    for (int i = 0; i < ROUNDS; i++)
        round_of_constructs();
    printf("lock-acquire=%d critical-acquire=%d taskwait-begin=%d worksharing-begin=%d single-begin=%d\n", locks, criticals, taskwaits,
           worksharings, singles);
    return sink == 0;
}
