/* Ranks 0 and 1 wait for messages of each other that they have asked for before, rank 2 for one of any rank, and rank 3 for all. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

static int value;

__attribute__((noinline)) static void await(int from, int tag) {
    MPI_Request request;
    MPI_Irecv(&value, 1, MPI_INT, from, tag, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    __asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv) {
    int provided, rank;
    alarm(120);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("ready\n");
    fflush(stdout);
    if (rank < 2)
        await(1 - rank, 5);
    if (rank == 2)
        await(MPI_ANY_SOURCE, MPI_ANY_TAG);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
