/* Each rank sends to the next one, and receives after that: the messages are too long to be sent before they are received. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

enum { BYTES = 4 << 20 };
static char sent[BYTES], received[BYTES];

int main(int argc, char **argv) {
    int provided, rank, size;
    alarm(60);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    printf("ready\n");
    fflush(stdout);
    MPI_Send(sent, BYTES, MPI_CHAR, (rank + 1) % size, 3, MPI_COMM_WORLD);
    MPI_Recv(received, BYTES, MPI_CHAR, (rank + size - 1) % size, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
