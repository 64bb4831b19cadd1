/* Locks and a critical section that are held for milliseconds, by threads that
 * sleep meanwhile: all others wait nearly always, and each gets its turn.  Two
 * locks are always taken in the same order. */
#include "expect.h"

static omp_lock_t outer, inner;
static omp_nest_lock_t stairs;

static void nap(void) {
    const struct timespec two_milliseconds = {0, 2000000};
    nanosleep(&two_milliseconds, NULL);
}

int main(void) {
    truth_init_for(TRUTH_HEALTHY_SECONDS);
    omp_init_lock(&outer);
    omp_init_lock(&inner);
    omp_init_nest_lock(&stairs);
#pragma omp parallel num_threads(4)
    for (;;) {
#pragma omp critical(ledger)
        nap();
        omp_set_lock(&outer);
        omp_set_lock(&inner);
        nap();
        omp_unset_lock(&inner);
        omp_unset_lock(&outer);
        omp_set_nest_lock(&stairs);
        omp_set_nest_lock(&stairs);
        nap();
        omp_unset_nest_lock(&stairs);
        omp_unset_nest_lock(&stairs);
        if (omp_get_thread_num() == 0)
            truth_round("long_critical", 0);
    }
}
