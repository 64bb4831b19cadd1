/* Each rank waits in another case of one switch, for which compilers make a table of jumps. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

static int received[8];

#define RECEIVE(from, tag) MPI_Recv(received, 1, MPI_INT, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE)

__attribute__((noinline)) static void exchange(int rank) {
    /* What comes after the calls differs, so that they are not made one. */
    switch (rank) {
    case 0: RECEIVE(1, 11); received[1] = 3; break;
    case 1: RECEIVE(2, 12); received[2] += 4; break;
    case 2: RECEIVE(3, 13); received[3] -= 5; break;
    case 3: RECEIVE(0, 14); received[4] *= 6; break;
    case 4: received[5] = 7; break;
    case 5: received[6] ^= 8; break;
    case 6: received[7] = received[0]; break;
    default: received[0] = rank;
    }
}

int main(int argc, char **argv) {
    int provided, rank;
    alarm(120);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("ready\n");
    fflush(stdout);
    exchange(rank);
    MPI_Finalize();
    return 0;
}
