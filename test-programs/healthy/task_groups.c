/* Tasks that wait at the end of task groups of their own, and yield. */
#include "expect.h"

static volatile int cell[8];

static void work(int i) {
    for (int k = 0; k < 1000; k++)
        cell[i] += k;
}

int main(void) {
    truth_init_for(TRUTH_HEALTHY_SECONDS);
#pragma omp parallel num_threads(4)
#pragma omp single
    for (;;) {
#pragma omp taskgroup
        for (int i = 0; i < 6; i++) {
#pragma omp task
            {
#pragma omp taskgroup
                for (int j = 0; j < 3; j++) {
#pragma omp task
                    {
                        work(j);
#pragma omp taskyield
                        work(j);
                    }
                }
#pragma omp taskyield
            }
        }
        truth_round("task_groups", 0);
    }
}
