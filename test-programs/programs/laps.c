/* Each thread of a team makes laps without end, and counts them. None begins before all are there. */
#include <omp.h>
#include <pthread.h>

enum { THREADS = 4 };

static pthread_barrier_t start;
volatile long laps[THREADS];

__attribute__((noinline)) static void all_arrived(void) { __asm__ volatile(""); }

__attribute__((noinline)) static void lap(int me) {
    laps[me]++;
    __asm__ volatile("nop"); /* each lap comes here */
}

int main(void) {
    pthread_barrier_init(&start, NULL, THREADS);
#pragma omp parallel num_threads(THREADS)
    {
        int me = omp_get_thread_num();
        pthread_barrier_wait(&start);
        if (me == 0)
            all_arrived();
        pthread_barrier_wait(&start);
        for (;;)
            lap(me);
    }
    return 0;
}
