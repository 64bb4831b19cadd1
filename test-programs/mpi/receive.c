/* The first member waits for a message that nobody sends, the other for it at the end of the region. */
#include <mpi.h>
#include <stdio.h>

__attribute__((noinline)) static void exchange(void) {
    int value;
    MPI_Recv(&value, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("%d\n", value);
}

int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    printf("ready\n");
    fflush(stdout);
#pragma omp parallel num_threads(2)
#pragma omp master
    exchange();
    MPI_Finalize();
    return 0;
}
