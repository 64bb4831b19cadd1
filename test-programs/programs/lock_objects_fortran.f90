! As lock_objects.cc, with arrays of Fortran, which count from 1 or from where they say, and columns first.
program work
  use iso_c_binding
  use omp_lib
  implicit none

  interface
    subroutine hang_init() bind(c)
    end subroutine
    subroutine hang_expect(verdict, situation, without_owners, threads, objects) bind(c)
      import
      character(kind=c_char), intent(in) :: verdict(*), situation(*), without_owners(*), threads(*), objects(*)
    end subroutine
    subroutine hang_note(role, wait, object) bind(c)
      import
      type(c_ptr), value :: role
      character(kind=c_char), intent(in) :: wait(*)
      type(c_ptr), value :: object
    end subroutine
    subroutine hang_tell(program, expected) bind(c)
      import
      character(kind=c_char), intent(in) :: program(*)
      integer(c_int), value :: expected
    end subroutine
    subroutine hang_raise(flag) bind(c)
      import
      integer(c_int), value :: flag
    end subroutine
    subroutine hang_await(flag) bind(c)
      import
      integer(c_int), value :: flag
    end subroutine
  end interface

  type cell
    integer :: used
    integer(omp_lock_kind) :: lock
  end type

  integer(c_int), parameter :: held = 0
  ! What is noted is kept by its address.
  character(kind=c_char, len=9), save :: verdict = "deadlock" // c_null_char
  character(kind=c_char, len=15), save :: situation = "missing_member" // c_null_char
  character(kind=c_char, len=7), save, target :: holder = "holder" // c_null_char
  character(kind=c_char, len=1), save :: objects = c_null_char
  character(kind=c_char, len=18), save, target :: in_square = "work::square(2,3)" // c_null_char
  character(kind=c_char, len=17), save, target :: in_ribbon = "work::ribbon(5)" // c_null_char
  character(kind=c_char, len=20), save, target :: in_cells = "work::cells(2)%lock" // c_null_char
  ! Without storage of their own for ever, they are on the stack.
  integer(omp_lock_kind), target :: square(4, 5), ribbon(3:6)
  type(cell), target :: cells(2)

  call hang_init()
  call hang_expect(verdict, situation, situation, holder, objects)
  call omp_init_lock(square(2, 3))
  call omp_init_lock(ribbon(5))
  call omp_init_lock(cells(2)%lock)
  !$omp parallel num_threads(4) shared(square, ribbon, cells)
  select case (omp_get_thread_num())
  case (0)
    call omp_set_lock(square(2, 3))
    call omp_set_lock(ribbon(5))
    call omp_set_lock(cells(2)%lock)
    call hang_raise(held)
    call hang_note(c_loc(holder), "barrier" // c_null_char, c_null_ptr)
    call hang_tell("lock_objects_fortran" // c_null_char, 4)
  case (1)
    call hang_await(held)
    call hang_note(c_loc(in_square), "lock" // c_null_char, c_loc(square(2, 3)))
    call omp_set_lock(square(2, 3))
  case (2)
    call hang_await(held)
    call hang_note(c_loc(in_ribbon), "lock" // c_null_char, c_loc(ribbon(5)))
    call omp_set_lock(ribbon(5))
  case default
    call hang_await(held)
    call hang_note(c_loc(in_cells), "lock" // c_null_char, c_loc(cells(2)%lock))
    call omp_set_lock(cells(2)%lock)
  end select
  !$omp barrier
  !$omp end parallel
end program
