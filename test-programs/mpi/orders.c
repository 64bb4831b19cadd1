/* Rank 0 calls the barriers of two communicators in another order than the others. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int provided, rank;
    MPI_Comm same;
    alarm(60);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &same);
    printf("ready\n");
    fflush(stdout);
    if (rank == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Barrier(same);
    } else {
        MPI_Barrier(same);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
