/* Tasks in tasks, many levels deep, each waiting for its children; when the
 * last is done it begins anew. */
#include "expect.h"

static long fibonacci(int n) {
    long one = 0, two = 0;
    if (n < 2)
        return n;
#pragma omp task shared(one)
    one = fibonacci(n - 1);
#pragma omp task shared(two)
    two = fibonacci(n - 2);
#pragma omp taskwait
    return one + two;
}

int main(void) {
    truth_init_for(TRUTH_HEALTHY_SECONDS);
#pragma omp parallel num_threads(4)
#pragma omp single
    for (;;) {
        if (fibonacci(14) != 377)
            truth_fail("wrong sum of tasks");
        truth_round("deep_tasks", 0);
    }
}
