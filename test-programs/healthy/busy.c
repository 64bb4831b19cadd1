/* One short region after the other: a loop with a reduction. */
#include "expect.h"

enum { CELLS = 20000 };
static double cell[CELLS];

int main(void) {
    truth_init_for(TRUTH_HEALTHY_SECONDS);
    for (;;) {
        double sum = 0;
#pragma omp parallel for num_threads(4) reduction(+ : sum)
        for (int i = 0; i < CELLS; i++) {
            cell[i] = cell[i] / 2 + i;
            sum += cell[i];
        }
        cell[0] = sum / CELLS;
        truth_round("busy", 0);
    }
}
