/* Items go through three stages, each a task that depends on the stage before
 * it and on the item before it. */
#include "expect.h"

enum { ITEMS = 24 };
static int item[ITEMS], stage[3];

static void work(int *what, int by) {
    for (int i = 0; i < 200; i++)
        *(volatile int *)what += by;
}

int main(void) {
    truth_init_for(TRUTH_HEALTHY_SECONDS);
#pragma omp parallel num_threads(4)
#pragma omp single
    for (;;) {
        for (int i = 0; i < ITEMS; i++) {
#pragma omp task depend(out : item[i]) depend(inout : stage[0])
            work(&item[i], 1);
#pragma omp task depend(inout : item[i]) depend(inout : stage[1])
            work(&item[i], 2);
#pragma omp task depend(in : item[i]) depend(inout : stage[2])
            work(&stage[2], 3);
        }
#pragma omp taskwait
        truth_round("depend_pipeline", 0);
    }
}
