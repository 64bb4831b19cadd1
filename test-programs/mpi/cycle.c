/* Ranks 0 and 1 wait for a message of each other, and all others in a barrier. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

static int rank;

__attribute__((noinline)) static void swap(void) {
    int value, partner = 1 - rank;
    MPI_Recv(&value, 1, MPI_INT, partner, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&value, 1, MPI_INT, partner, 3, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    int provided;
    alarm(60);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("ready\n");
    fflush(stdout);
    if (rank < 2)
        swap();
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
