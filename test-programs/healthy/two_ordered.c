/* Two loops with `ordered`, the first with `nowait`: a member is still in the first
 * one and waits for a lock.  Another has it, and waits for its turn in the second. */
#include "expect.h"

#include <unistd.h>

enum { MEMBERS = 3, NAP_MS = 150 };

int main(void) {
    static omp_nest_lock_t lock;
    static atomic_int inside, set;
    truth_init_for(TRUTH_HEALTHY_SECONDS);
    omp_init_nest_lock(&lock);
    for (;;) {
        atomic_store(&inside, 0);
        atomic_store(&set, 0);
#pragma omp parallel num_threads(MEMBERS)
        {
            int me = omp_get_thread_num();
#pragma omp for ordered schedule(static, 1) nowait
            for (int i = 0; i < MEMBERS + 1; i++) {
#pragma omp ordered
                if (i == MEMBERS) {
                    truth_wait_for(&set);
                    omp_set_nest_lock(&lock);
                    omp_unset_nest_lock(&lock);
                }
            }
            if (me == 2)
                truth_wait_for(&inside);
#pragma omp for ordered schedule(dynamic, 1)
            for (int i = 0; i < MEMBERS; i++) {
                int holds = me == 2 && i == 1;
                if (holds) {
                    omp_set_nest_lock(&lock);
                    atomic_store(&set, 1);
                }
#pragma omp ordered
                if (i == 0) {
                    atomic_store(&inside, 1);
                    usleep(1000 * NAP_MS);
                }
                if (holds)
                    omp_unset_nest_lock(&lock);
            }
        }
        truth_round("two_ordered", 0);
    }
}
