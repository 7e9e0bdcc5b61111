! Reductions from Fortran: real, logical, pairs, MPI_IN_PLACE; prints "fortran ok" at rank 0.
program reduce_mpif
  implicit none
  include 'mpif.h'
  integer :: rank, n, error, i, best(2), pair(2)
  double precision :: mine(4), total(4)
  logical :: here, all_here
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, n, error)
  do i = 1, 50
     mine = rank + i
     total = -1
     call MPI_Reduce(mine, total, 4, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD, error)
     if (rank == 0 .and. any(total /= n * i + n * (n - 1) / 2)) call MPI_Abort(MPI_COMM_WORLD, 1, error)
     if (rank == 0) then
        total = i
        call MPI_Reduce(MPI_IN_PLACE, total, 4, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD, error)
        if (any(total /= n * i + n * (n - 1) / 2)) call MPI_Abort(MPI_COMM_WORLD, 2, error)
     else
        call MPI_Reduce(mine, total, 4, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD, error)
     end if
     here = rank >= 0
     call MPI_Reduce(here, all_here, 1, MPI_LOGICAL, MPI_LAND, 0, MPI_COMM_WORLD, error)
     if (rank == 0 .and. .not. all_here) call MPI_Abort(MPI_COMM_WORLD, 3, error)
     pair = (/ -rank, rank /)
     call MPI_Reduce(pair, best, 1, MPI_2INTEGER, MPI_MINLOC, 0, MPI_COMM_WORLD, error)
     if (rank == 0 .and. best(2) /= n - 1) call MPI_Abort(MPI_COMM_WORLD, 4, error)
  end do
  if (rank == 0) print '(a)', 'fortran ok'
  call MPI_Finalize(error)
end program
