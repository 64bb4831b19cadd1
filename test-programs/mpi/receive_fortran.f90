! The same in Fortran.
program receive
    implicit none
    include 'mpif.h'
    integer :: provided, error
    call mpi_init_thread(MPI_THREAD_FUNNELED, provided, error)
    print '(a)', 'ready'
    flush (6)
    !$omp parallel num_threads(2)
    !$omp master
    call exchange()
    !$omp end master
    !$omp end parallel
    call mpi_finalize(error)
contains
    subroutine exchange()
        integer :: value, failed
        call mpi_recv(value, 1, MPI_INTEGER, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE, failed)
        print *, value
    end subroutine
end program
