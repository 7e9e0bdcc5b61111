! The same calls as the other two Fortran solvers, by `use mpi`. run.py knows
! how many calls and bytes they make.
program solver_usempi
  use mpi
  use sapwood_region
  implicit none
  integer :: rank, ranks, i, neighbour, length, found
  integer :: requests(2), part, doubles, info, ierror
  integer :: counts(64), places(64)
  integer :: indices(2)
  integer :: statuses(MPI_STATUS_SIZE, 2)
  double precision :: field(200), other(200)
  character(len=MPI_MAX_PROCESSOR_NAME) :: name
  character(len=16) :: value
  logical :: flag

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  field = 1
  other = 0
  call sapwood_region_begin("solve  ")
  do i = 1, 30
    call MPI_Allreduce(field, other, 2, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
  end do
  do i = 1, 10
    call MPI_Allreduce(MPI_IN_PLACE, field, 3, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
  end do
  call sapwood_region_end("solve")

  neighbour = mod(rank + 1, ranks)
  call MPI_Irecv(other, 150, MPI_DOUBLE_PRECISION, mod(rank + ranks - 1, ranks), 0, MPI_COMM_WORLD, requests(1), ierror)
  call MPI_Isend(field, 5, MPI_DOUBLE_PRECISION, neighbour, 0, MPI_COMM_WORLD, requests(2), ierror)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierror)
  call MPI_Sendrecv(field, 4, MPI_DOUBLE_PRECISION, rank, 1, other, 90, MPI_DOUBLE_PRECISION, rank, 1, &
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
  ! The second request completes first; the statuses of the other are the program's.
  call MPI_Irecv(other, 60, MPI_DOUBLE_PRECISION, rank, 2, MPI_COMM_WORLD, requests(1), ierror)
  call MPI_Irecv(other(101), 60, MPI_DOUBLE_PRECISION, rank, 3, MPI_COMM_WORLD, requests(2), ierror)
  call MPI_Send(field, 6, MPI_DOUBLE_PRECISION, rank, 3, MPI_COMM_WORLD, ierror)
  call MPI_Waitany(2, requests, found, MPI_STATUS_IGNORE, ierror)
  call MPI_Send(field, 7, MPI_DOUBLE_PRECISION, MPI_PROC_NULL, 2, MPI_COMM_WORLD, ierror)
  call MPI_Send(field, 7, MPI_DOUBLE_PRECISION, rank, 2, MPI_COMM_WORLD, ierror)
  call MPI_Waitsome(2, requests, found, indices, statuses, ierror)
  call MPI_Bcast(field, 6, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierror)
  call MPI_Barrier(MPI_COMM_WORLD, ierror)

  do i = 1, ranks
    counts(i) = 2
    places(i) = 2 * (i - 1)
  end do
  call MPI_Alltoallv(field, counts, places, MPI_DOUBLE_PRECISION, other, counts, places, MPI_DOUBLE_PRECISION, &
                     MPI_COMM_WORLD, ierror)
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, other, 3, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, ierror)

  ! The handle of the second part may be that of the first, with another size.
  do i = 0, 1
    call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2) * i, rank, part, ierror)
    call MPI_Allreduce(field, other, 1, MPI_DOUBLE_PRECISION, MPI_SUM, part, ierror)
    call MPI_Comm_free(part, ierror)
  end do
  call MPI_Type_contiguous(3, MPI_DOUBLE_PRECISION, doubles, ierror)
  call MPI_Type_commit(doubles, ierror)
  call MPI_Bcast(field, 2, doubles, 0, MPI_COMM_WORLD, ierror)
  call MPI_Type_free(doubles, ierror)

  ! Text arguments bring hidden lengths along.
  call MPI_Get_processor_name(name, length, ierror)
  call MPI_Info_create(info, ierror)
  call MPI_Info_set(info, "key", "a value", ierror)
  call MPI_Info_get(info, "key", len(value), value, flag, ierror)
  call MPI_Info_free(info, ierror)
  found = 0
  if (flag .and. value == "a value" .and. length > 0) found = 1
  call MPI_Finalize(ierror)
  if (found == 0) stop 3
end program solver_usempi
