/* Each rank waits in a call whose arguments have changed since they were computed, before the call. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

static int value, ranks;

static void receive(int from, int tag) {
    MPI_Recv(&value, 1, MPI_INT, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* From rank 1 with tag 41. */
__attribute__((noinline)) static void by_one(void) {
    for (int from = 1; from < ranks; from++)
        receive(from, 40 + from);
}

/* From rank 2 with tag 2. */
__attribute__((noinline)) static void by_double(void) {
    for (int from = 2; from < 2 * ranks; from *= 2)
        receive(from, from);
}

/* From rank 3 with tag 1. */
__attribute__((noinline)) static void requests(void) {
    MPI_Request all[2];
    for (int n = 0; n < 2; n++)
        MPI_Irecv(&value, 1, MPI_INT, 3 - n, 1 + n, MPI_COMM_WORLD, &all[n]);
    for (int n = 0; n < 2; n++)
        MPI_Wait(&all[n], MPI_STATUS_IGNORE);
}

/* From rank 2 with tag 9. The variables are on the stack however it is compiled. */
__attribute__((noinline)) static void in_place(int first, int first_tag) {
    volatile int from = first, tag = first_tag;
    while (from < ranks)
        MPI_Recv(&value, 1, MPI_INT, from++, tag++, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    int provided, rank;
    alarm(120);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    printf("ready\n");
    fflush(stdout);
    if (rank == 0)
        by_one();
    else if (rank == 1)
        by_double();
    else if (rank == 2)
        requests();
    else
        in_place(2, 9);
    MPI_Finalize();
    return 0;
}
