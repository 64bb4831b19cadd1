/* A few tiny tasks are left to the barrier, by more threads than processors. */
#include "expect.h"

int main(void) {
    static volatile int cell[6];
    truth_init_for(TRUTH_HEALTHY_SECONDS);
#pragma omp parallel num_threads(6)
    for (;;) {
#pragma omp single nowait
        for (int i = 0; i < 6; i++) {
#pragma omp task
            for (int k = 0; k < 2000; k++)
                cell[i] += k;
        }
#pragma omp barrier
        if (omp_get_thread_num() == 0)
            truth_round("tail_tasks", 0);
    }
}
