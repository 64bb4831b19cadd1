/* Each rank waits in another call of MPI: arguments are on the stack, or those that the function around the call was given. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

static int sent[64], received[64];

__attribute__((noinline)) static void reduce(int root, MPI_Comm comm) {
    MPI_Reduce(sent, received, 1, MPI_INT, MPI_SUM, root, comm);
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void gather(void) {
    MPI_Gather(sent, 1, MPI_INT, received, 1, MPI_INT, 1, MPI_COMM_WORLD);
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void swap(int partner) {
    MPI_Sendrecv(sent, 1, MPI_INT, partner, 3, received, 1, MPI_INT, partner, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void receive(int from, int tag, MPI_Comm comm) {
    MPI_Recv(received, 1, MPI_INT, from, tag, comm, MPI_STATUS_IGNORE);
    __asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv) {
    int provided, rank;
    alarm(120);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("ready\n");
    fflush(stdout);
    switch (rank) {
    case 0: reduce(rank, MPI_COMM_WORLD); break;
    case 1: gather(); break;
    case 2: swap(rank); break;
    default: receive(2, 9, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
