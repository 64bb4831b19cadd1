/* The team of each rank is in the same loop: that of rank 0 stays at iteration 10, that of rank 1 at 20, and the others go on. */
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <unistd.h>

#define ITERATIONS 1000000

int main(int argc, char **argv) {
    int provided, rank, held = 0;
    alarm(60);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    long limit = rank < 2 ? 10 * (rank + 1) : 1000;
#pragma omp parallel for schedule(dynamic, 1) num_threads(2)
    for (long i = 0; i < ITERATIONS; i++) {
        if (i < limit)
            continue;
        int last;
#pragma omp atomic capture
        last = ++held;
        if (last == 2) {
            printf("ready\n");
            fflush(stdout);
        }
        if (rank < 2)
            pause();
        else
            usleep(1000);
    }
    MPI_Finalize();
    return 0;
}
