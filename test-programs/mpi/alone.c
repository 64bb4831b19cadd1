/* A program of one process, which no launcher has made a rank: one thread pauses, and the other waits for it in a barrier. */
#include <omp.h>
#include <stdio.h>
#include <unistd.h>

int main(void) {
    alarm(120);
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 1) {
            printf("ready\n");
            fflush(stdout);
            pause();
        }
#pragma omp barrier
    }
    return 0;
}
