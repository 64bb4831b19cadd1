/* Regions in regions: each member of a team opens one of its own, again and
 * again. */
#include "expect.h"

int main(void) {
    static volatile int cell[4][64];
    truth_init_for(TRUTH_HEALTHY_SECONDS);
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
    for (;;) {
        int outer = omp_get_thread_num();
#pragma omp parallel num_threads(2)
        {
            volatile int *mine = cell[2 * outer + omp_get_thread_num()];
            for (int i = 0; i < 5000; i++)
                mine[i % 64] += i;
        }
#pragma omp barrier
        if (outer == 0)
            truth_round("nested_busy", 0);
    }
}
