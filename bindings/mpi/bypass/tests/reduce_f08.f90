! Reductions from Fortran: real, logical, pairs, MPI_IN_PLACE; prints "fortran ok" at rank 0.
program reduce_f08
  use mpi_f08
  implicit none
  integer :: rank, n, i, best(2), pair(2)
  double precision :: mine(4), total(4)
  logical :: here, all_here
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, n)
  do i = 1, 50
     mine = rank + i
     total = -1
     call MPI_Reduce(mine, total, 4, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD)
     if (rank == 0 .and. any(total /= n * i + n * (n - 1) / 2)) call MPI_Abort(MPI_COMM_WORLD, 1)
     if (rank == 0) then
        total = i
        call MPI_Reduce(MPI_IN_PLACE, total, 4, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD)
        if (any(total /= n * i + n * (n - 1) / 2)) call MPI_Abort(MPI_COMM_WORLD, 2)
     else
        call MPI_Reduce(mine, total, 4, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD)
     end if
     here = rank >= 0
     call MPI_Reduce(here, all_here, 1, MPI_LOGICAL, MPI_LAND, 0, MPI_COMM_WORLD)
     if (rank == 0 .and. .not. all_here) call MPI_Abort(MPI_COMM_WORLD, 3)
     pair = (/ -rank, rank /)
     call MPI_Reduce(pair, best, 1, MPI_2INTEGER, MPI_MINLOC, 0, MPI_COMM_WORLD)
     if (rank == 0 .and. best(2) /= n - 1) call MPI_Abort(MPI_COMM_WORLD, 4)
  end do
  if (rank == 0) print '(a)', 'fortran ok'
  call MPI_Finalize()
end program
