/* An untied task sets a nestable lock, is suspended, and is continued by another
 * thread, where libomp lets it go there.  That one sleeps, and unsets the lock. */
#include "expect.h"

#include <unistd.h>

enum { MEMBERS = 4, TRIES = 100, NAP_MS = 150 };

int main(void) {
    static omp_nest_lock_t lock;
    static atomic_int set;
    truth_init_for(TRUTH_HEALTHY_SECONDS);
    omp_init_nest_lock(&lock);
    for (;;) {
        atomic_store(&set, 0);
#pragma omp parallel num_threads(MEMBERS)
        {
            if (omp_get_thread_num() == 0) {
#pragma omp task untied
                {
                    omp_set_nest_lock(&lock);
                    int setter = omp_get_thread_num();
                    for (int tried = 0; tried < TRIES && omp_get_thread_num() == setter; tried++) {
                        usleep(1000);
#pragma omp taskyield
                    }
                    atomic_store(&set, 1);
                    usleep(1000 * NAP_MS);
                    omp_unset_nest_lock(&lock);
                }
#pragma omp task
                {
                    truth_wait_for(&set);
                    omp_set_nest_lock(&lock);
                    omp_unset_nest_lock(&lock);
                }
            }
#pragma omp barrier
        }
        truth_round("moved_untied", 0);
    }
}
