! Names of Fortran in logical stacks: the main program, a module's procedures,
! an internal procedure, and constructs in each of them.
!
! A mark is made by call_at on the line of the call, and takes the name of the
! procedure, which Fortran does not tell by itself.
#define CALL_AT(NAME, OUTER) mark(NAME, OUTER, __LINE__)

module truth
  use, intrinsic :: iso_c_binding, only: c_char, c_int, c_ptr
  implicit none

  integer(c_int), parameter :: pipe = 7, threads = 6

  interface
    subroutine truth_stack_init() bind(c)
    end subroutine
    function truth_thread_base() bind(c)
      import :: c_ptr
      type(c_ptr) :: truth_thread_base
    end function
    function truth_fortran_mark(outer, name, length, line, construct, construct_length) bind(c)
      import :: c_char, c_int, c_ptr
      type(c_ptr), value :: outer
      character(kind=c_char), intent(in) :: name(*), construct(*)
      integer(c_int), value :: length, line, construct_length
      type(c_ptr) :: truth_fortran_mark
    end function
    function truth_enter(opened) bind(c)
      import :: c_ptr
      type(c_ptr), value :: opened
      type(c_ptr) :: truth_enter
    end function
    subroutine truth_leave(entered) bind(c)
      import :: c_ptr
      type(c_ptr), value :: entered
    end subroutine
    subroutine truth_stack_return() bind(c)
    end subroutine
    subroutine truth_fortran_note(role, length, wait, at) bind(c)
      import :: c_char, c_int, c_ptr
      character(kind=c_char), intent(in) :: role(*)
      integer(c_int), value :: length, wait
      type(c_ptr), value :: at
    end subroutine
    subroutine truth_stack_hold() bind(c)
    end subroutine
    subroutine truth_stack_step() bind(c)
    end subroutine
    subroutine truth_fortran_ready(name, length, expected) bind(c)
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: length, expected
    end subroutine
    subroutine truth_stack_release() bind(c)
    end subroutine
    subroutine truth_stack_done() bind(c)
    end subroutine
  end interface

contains

  function mark(name, outer, line)
    character(len=*), intent(in) :: name
    type(c_ptr), intent(in) :: outer
    integer, intent(in) :: line
    type(c_ptr) :: mark
    mark = truth_fortran_mark(outer, name, len(name), line, "", 0)
  end function

  function opens(construct, name, outer, line)
    character(len=*), intent(in) :: construct, name
    type(c_ptr), intent(in) :: outer
    integer, intent(in) :: line
    type(c_ptr) :: opens
    opens = truth_fortran_mark(outer, name, len(name), line, construct, len(construct))
  end function

  subroutine note(role, at)
    character(len=*), intent(in) :: role
    type(c_ptr), intent(in) :: at
    call truth_fortran_note(role, len(role), pipe, at)
  end subroutine

end module

module bar
  use truth
  use, intrinsic :: iso_c_binding, only: c_ptr
  implicit none

contains

  subroutine hold(role, outer)
    character(len=*), intent(in) :: role
    type(c_ptr), intent(in) :: outer
    call note(role, mark("bar::hold", outer, __LINE__ + 1))
    call truth_stack_hold()
    call truth_stack_step()
  end subroutine

  subroutine relax(outer)
    type(c_ptr), intent(in) :: outer
    call hold("module procedure", CALL_AT("bar::relax", outer))
    call truth_stack_return()
  end subroutine

  subroutine sweep(outer)
    type(c_ptr), intent(in) :: outer
    type(c_ptr) :: opened, in
    integer :: i
    opened = opens("parallel for", "bar::sweep", outer, __LINE__ + 1)
    !$omp parallel do num_threads(2) schedule(static) private(in)
    do i = 1, 2
      in = truth_enter(opened)
      call hold("loop in a module procedure", CALL_AT("bar::sweep", in))
      call truth_leave(in)
    end do
    !$omp end parallel do
    call truth_stack_return()
  end subroutine

end module

program stacks_fortran
  use bar
  use truth
  use omp_lib, only: omp_get_thread_num, omp_set_max_active_levels
  use, intrinsic :: iso_c_binding, only: c_ptr
  implicit none
  type(c_ptr) :: base, opened, in

  call truth_stack_init()
  call omp_set_max_active_levels(4)
  base = truth_thread_base()
  opened = opens("parallel", "stacks_fortran", base, __LINE__ + 1)
  !$omp parallel num_threads(5) private(in)
  in = truth_enter(opened)
  if (omp_get_thread_num() == 0) then
    call coordinate(CALL_AT("stacks_fortran", in))
  else if (omp_get_thread_num() == 1) then
    call relax(CALL_AT("stacks_fortran", in))
  else if (omp_get_thread_num() == 2) then
    call sweep(CALL_AT("stacks_fortran", in))
  else if (omp_get_thread_num() == 3) then
    call inner(CALL_AT("stacks_fortran", in))
  else
    call external_procedure(CALL_AT("stacks_fortran", in))
  end if
  call truth_leave(in)
  !$omp end parallel
  call truth_stack_done()

contains

  subroutine coordinate(outer)
    type(c_ptr), intent(in) :: outer
    call note("coordinator", mark("stacks_fortran::coordinate", outer, __LINE__ + 1))
    call truth_fortran_ready("stacks_fortran", 14, threads)
    call truth_stack_release()
    call truth_stack_step()
  end subroutine

  subroutine inner(outer)
    type(c_ptr), intent(in) :: outer
    type(c_ptr) :: made, inside
    made = opens("task", "stacks_fortran::inner", outer, __LINE__ + 1)
    !$omp task if (.false.) private(inside)
    inside = truth_enter(made)
    call hold("task in an internal procedure", CALL_AT("stacks_fortran::inner", inside))
    call truth_leave(inside)
    !$omp end task
    call truth_stack_return()
  end subroutine

end program

subroutine external_procedure(outer)
  use bar
  use truth
  use, intrinsic :: iso_c_binding, only: c_ptr
  implicit none
  type(c_ptr), intent(in) :: outer
  call hold("external procedure", CALL_AT("external_procedure", outer))
  call truth_stack_return()
end subroutine
