/* Loops of every schedule, with ordered regions, doacross, sections and single, for ever. */
#include "expect.h"

enum { COUNT = 64 };
static int cell[COUNT];

static void work(int i) {
    for (int k = 0; k < 100 * (i % 7); k++)
        *(volatile int *)&cell[i] += k;
}

int main(void) {
    truth_init_for(TRUTH_HEALTHY_SECONDS);
#pragma omp parallel num_threads(4)
    for (;;) {
#pragma omp for schedule(dynamic, 3)
        for (int i = 0; i < COUNT; i++)
            work(i);
#pragma omp for schedule(guided) nowait
        for (int i = 0; i < COUNT; i++)
            work(i);
#pragma omp for schedule(dynamic) ordered
        for (int i = 0; i < COUNT; i++) {
            work(i);
#pragma omp ordered
            cell[0] += i;
        }
#pragma omp for schedule(static, 1) ordered
        for (int i = 0; i < COUNT; i++) {
#pragma omp ordered
            work(i);
        }
#pragma omp for schedule(static, 1) ordered(1)
        for (int i = 0; i < COUNT; i++) {
#pragma omp ordered depend(sink : i - 1)
            work(i);
#pragma omp ordered depend(source)
        }
#pragma omp sections
        {
            work(1);
#pragma omp section
            work(2);
        }
#pragma omp single
        work(3);
        if (omp_get_thread_num() == 0)
            truth_round("loops", 0);
    }
}
