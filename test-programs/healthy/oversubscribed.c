/* Sixteen threads go from barrier to barrier, whatever the number of processors:
 * whenever they are looked at, most wait for a few that cannot run at once. */
#include "expect.h"

int main(void) {
    static volatile double cell[16][64];
    truth_init_for(TRUTH_HEALTHY_SECONDS);
#pragma omp parallel num_threads(16)
    {
        int me = omp_get_thread_num();
        for (;;) {
            for (int i = 0; i < 64 * (me + 1); i++)
                cell[me][i % 64] = cell[me][i % 64] / 2 + i;
#pragma omp barrier
            if (me == 0)
                truth_round("oversubscribed", 0);
        }
    }
}
