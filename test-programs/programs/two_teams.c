/* Two inner teams of two threads. Once all are there, one team ends. The other one counts until the first has ended. */
#include <omp.h>
#include <pthread.h>
#include <sched.h>

static pthread_barrier_t arrival;
static int finished;
volatile long counts[2];

__attribute__((noinline)) static void all_arrived(void) { __asm__ volatile(""); }

static int is_finished(void) {
    int found;
#pragma omp atomic read
    found = finished;
    return found;
}

static void inner(int outer) {
    int me = omp_get_thread_num();
    pthread_barrier_wait(&arrival);
    if (outer == 1) {
        if (me == 0)
            all_arrived();
        return;
    }
    while (!is_finished()) {
        counts[me]++;
        sched_yield();
    }
}

int main(void) {
    pthread_barrier_init(&arrival, NULL, 4);
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
    {
        int outer = omp_get_thread_num();
#pragma omp parallel num_threads(2) firstprivate(outer)
        inner(outer);
        if (outer == 1) {
#pragma omp atomic write
            finished = 1;
        }
    }
    return 0;
}
