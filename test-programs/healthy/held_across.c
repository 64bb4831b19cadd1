/* A lock is held across a barrier, and the others want it right behind. */
#include "expect.h"

enum { MEMBERS = 8 };

int main(void) {
    static omp_lock_t lock;
    static volatile int cell;
    truth_init_for(TRUTH_HEALTHY_SECONDS);
    omp_init_lock(&lock);
#pragma omp parallel num_threads(MEMBERS)
    {
        int me = omp_get_thread_num();
        for (unsigned round = 0;; round++) {
            int mine = me == (int)(round / 2 % MEMBERS);
            if (mine)
                omp_set_lock(&lock);
#pragma omp barrier
            if (!mine)
                omp_set_lock(&lock);
            cell++;
            omp_unset_lock(&lock);
#pragma omp barrier
            if (me == 0)
                truth_round("held_across", 0);
        }
    }
}
