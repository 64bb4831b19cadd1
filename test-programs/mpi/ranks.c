/* All ranks but number 2 wait for it in a barrier of MPI.  In that one, a thread waits for a lock that another thread of its team holds, at
 * the end of the region. */
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <unistd.h>

static omp_lock_t grid_lock;

__attribute__((noinline)) static void update(void) {
    omp_set_lock(&grid_lock);
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void exchange(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    __asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv) {
    int provided, rank;
    alarm(120);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    omp_init_lock(&grid_lock);
    printf("ready\n");
    fflush(stdout);
    if (rank == 2) {
#pragma omp parallel num_threads(2)
        {
            if (omp_get_thread_num() == 1)
                omp_set_lock(&grid_lock);
#pragma omp barrier
            if (omp_get_thread_num() == 0)
                update();
        }
    }
    exchange();
    MPI_Finalize();
    return 0;
}
