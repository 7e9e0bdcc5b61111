! Regions of a Fortran program; see sapwood_mpi.h for what they do.
!
!     use sapwood_region
!     call sapwood_region_begin("solve")
!     call sapwood_region_end("solve")
!     call sapwood_round()
!
! Trailing blanks are no part of a name.
module sapwood_region
  use, intrinsic :: iso_c_binding, only: c_char, c_null_char
  implicit none
  private
  public :: sapwood_region_begin, sapwood_region_end, sapwood_round

  interface
    subroutine c_region_begin(name) bind(C, name="sapwood_region_begin")
      import :: c_char
      character(kind=c_char), intent(in) :: name(*)
    end subroutine c_region_begin
    subroutine c_region_end(name) bind(C, name="sapwood_region_end")
      import :: c_char
      character(kind=c_char), intent(in) :: name(*)
    end subroutine c_region_end
    subroutine sapwood_round() bind(C, name="sapwood_round")
    end subroutine sapwood_round
  end interface

contains

  subroutine sapwood_region_begin(name)
    character(len=*), intent(in) :: name
    call c_region_begin(trim(name) // c_null_char)
  end subroutine sapwood_region_begin

  subroutine sapwood_region_end(name)
    character(len=*), intent(in) :: name
    call c_region_end(trim(name) // c_null_char)
  end subroutine sapwood_region_end

end module sapwood_region
