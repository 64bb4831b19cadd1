! The same in Fortran.
program given
    implicit none
    include 'mpif.h'
    integer :: provided, rank, error
    integer, save :: sent(64), received(64)
    call mpi_init_thread(MPI_THREAD_FUNNELED, provided, error)
    call mpi_comm_rank(MPI_COMM_WORLD, rank, error)
    print '(a)', 'ready'
    flush (6)
    select case (rank)
    case (0)
        call reduce(rank, MPI_COMM_WORLD)
    case (1)
        call gather()
    case (2)
        call swap(rank)
    case default
        call receive(2, 9, MPI_COMM_WORLD)
    end select
    call mpi_finalize(error)
contains
    subroutine reduce(root, comm)
        integer, intent(in) :: root, comm
        integer :: failed
        call mpi_reduce(sent, received, 1, MPI_INTEGER, MPI_SUM, root, comm, failed)
        print *, failed
    end subroutine
    subroutine gather()
        integer :: failed
        call mpi_gather(sent, 1, MPI_INTEGER, received, 1, MPI_INTEGER, 1, MPI_COMM_WORLD, failed)
        print *, failed
    end subroutine
    subroutine swap(partner)
        integer, intent(in) :: partner
        integer :: failed
        call mpi_sendrecv(sent, 1, MPI_INTEGER, partner, 3, received, 1, MPI_INTEGER, partner, 4, MPI_COMM_WORLD, &
                          MPI_STATUS_IGNORE, failed)
        print *, failed
    end subroutine
    subroutine receive(from, tag, comm)
        integer, intent(in) :: from, tag, comm
        integer :: failed
        call mpi_recv(received, 1, MPI_INTEGER, from, tag, comm, MPI_STATUS_IGNORE, failed)
        print *, failed
    end subroutine
end program
