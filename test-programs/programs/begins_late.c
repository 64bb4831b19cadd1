/* Says "ready" before it calls OpenMP for the first time, and goes on when it can read a byte. */
#include <omp.h>
#include <stdio.h>

/* clang asks the runtime for the thread's number at the begin of the function that has the region. */
__attribute__((noinline)) static int region(void) {
    int sum = 0;
#pragma omp parallel num_threads(2) reduction(+ : sum)
    sum += omp_get_thread_num();
    return sum;
}

int main(void) {
    printf("ready\n");
    fflush(stdout);
    getchar();
    return region() - 1;
}
