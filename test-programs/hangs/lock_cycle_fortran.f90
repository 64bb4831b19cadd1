! Two members take two locks in opposite order; the third waits for them at the
! end of the region.
module cycle_locks
  use iso_c_binding
  use omp_lib
  implicit none
  integer(omp_lock_kind), target :: a, b
  integer(c_int), parameter :: a_held = 0, b_held = 1

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
    subroutine hang_note_lock(name, kind, address) bind(c)
      import
      character(kind=c_char), intent(in) :: name(*), kind(*)
      type(c_ptr), value :: address
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

  ! Roles are kept by their addresses.
  character(kind=c_char, len=12), target :: first_role = "holder of a" // c_null_char
  character(kind=c_char, len=12), target :: second_role = "holder of b" // c_null_char
  character(kind=c_char, len=10), target :: third_role = "bystander" // c_null_char

contains

  subroutine a_first()
    call omp_set_lock(a)
    call hang_note_lock("a" // c_null_char, "lock" // c_null_char, c_loc(a))
    call hang_raise(a_held)
    call hang_await(b_held)
    call hang_note(c_loc(first_role), "lock" // c_null_char, c_loc(b))
    call omp_set_lock(b)
  end subroutine

  subroutine b_first()
    call omp_set_lock(b)
    call hang_note_lock("b" // c_null_char, "lock" // c_null_char, c_loc(b))
    call hang_raise(b_held)
    call hang_await(a_held)
    call hang_note(c_loc(second_role), "lock" // c_null_char, c_loc(a))
    call hang_tell("lock_cycle_fortran" // c_null_char, 3)
    call omp_set_lock(a)
  end subroutine
end module

program lock_cycle
  use cycle_locks
  implicit none
  character(kind=c_char, len=9), save :: verdict = "deadlock" // c_null_char
  character(kind=c_char, len=11), save :: situation = "lock_cycle" // c_null_char
  character(kind=c_char, len=13), save :: without_owners = "closed_waits" // c_null_char
  character(kind=c_char, len=24), save :: threads = "holder of a,holder of b" // c_null_char
  character(kind=c_char, len=4), save :: objects = "a,b" // c_null_char

  call hang_init()
  call hang_expect(verdict, situation, without_owners, threads, objects)
  call omp_init_lock(a)
  call omp_init_lock(b)
  !$omp parallel num_threads(3)
  select case (omp_get_thread_num())
  case (0)
    call a_first()
  case (1)
    call b_first()
  case default
    call hang_note(c_loc(third_role), "barrier" // c_null_char, c_null_ptr)
  end select
  !$omp end parallel
end program
