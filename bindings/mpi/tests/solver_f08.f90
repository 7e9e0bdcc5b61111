! The same calls as the other two Fortran solvers, by `use mpi_f08`, with ierror left out. run.py knows
! how many calls and bytes they make.
program solver_f08
  use mpi_f08
  use sapwood_region
  implicit none
  integer :: rank, ranks, i, neighbour, length, found
  type(MPI_Request) :: requests(2)
  type(MPI_Comm) :: part
  type(MPI_Datatype) :: doubles
  type(MPI_Info) :: info
  integer :: counts(64), places(64)
  integer :: indices(2)
  type(MPI_Status) :: statuses(2)
  double precision :: field(200), other(200)
  character(len=MPI_MAX_PROCESSOR_NAME) :: name
  character(len=16) :: value
  logical :: flag

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  field = 1
  other = 0
  call sapwood_region_begin("solve  ")
  do i = 1, 30
    call MPI_Allreduce(field, other, 2, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  end do
  do i = 1, 10
    call MPI_Allreduce(MPI_IN_PLACE, field, 3, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  end do
  call sapwood_region_end("solve")

  neighbour = mod(rank + 1, ranks)
  call MPI_Irecv(other, 150, MPI_DOUBLE_PRECISION, mod(rank + ranks - 1, ranks), 0, MPI_COMM_WORLD, requests(1))
  call MPI_Isend(field, 5, MPI_DOUBLE_PRECISION, neighbour, 0, MPI_COMM_WORLD, requests(2))
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
  call MPI_Sendrecv(field, 4, MPI_DOUBLE_PRECISION, rank, 1, other, 90, MPI_DOUBLE_PRECISION, rank, 1, &
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  ! The second request completes first; the statuses of the other are the program's.
  call MPI_Irecv(other, 60, MPI_DOUBLE_PRECISION, rank, 2, MPI_COMM_WORLD, requests(1))
  call MPI_Irecv(other(101), 60, MPI_DOUBLE_PRECISION, rank, 3, MPI_COMM_WORLD, requests(2))
  call MPI_Send(field, 6, MPI_DOUBLE_PRECISION, rank, 3, MPI_COMM_WORLD)
  call MPI_Waitany(2, requests, found, MPI_STATUS_IGNORE)
  call MPI_Send(field, 7, MPI_DOUBLE_PRECISION, MPI_PROC_NULL, 2, MPI_COMM_WORLD)
  call MPI_Send(field, 7, MPI_DOUBLE_PRECISION, rank, 2, MPI_COMM_WORLD)
  call MPI_Waitsome(2, requests, found, indices, statuses)
  call MPI_Bcast(field, 6, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD)
  call MPI_Barrier(MPI_COMM_WORLD)

  do i = 1, ranks
    counts(i) = 2
    places(i) = 2 * (i - 1)
  end do
  call MPI_Alltoallv(field, counts, places, MPI_DOUBLE_PRECISION, other, counts, places, MPI_DOUBLE_PRECISION, &
                     MPI_COMM_WORLD)
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, other, 3, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD)

  ! The handle of the second part may be that of the first, with another size.
  do i = 0, 1
    call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2) * i, rank, part)
    call MPI_Allreduce(field, other, 1, MPI_DOUBLE_PRECISION, MPI_SUM, part)
    call MPI_Comm_free(part)
  end do
  call MPI_Type_contiguous(3, MPI_DOUBLE_PRECISION, doubles)
  call MPI_Type_commit(doubles)
  call MPI_Bcast(field, 2, doubles, 0, MPI_COMM_WORLD)
  call MPI_Type_free(doubles)

  ! Text arguments bring hidden lengths along.
  call MPI_Get_processor_name(name, length)
  call MPI_Info_create(info)
  call MPI_Info_set(info, "key", "a value")
  call MPI_Info_get(info, "key", len(value), value, flag)
  call MPI_Info_free(info)
  found = 0
  if (flag .and. value == "a value" .and. length > 0) found = 1
  call MPI_Finalize()
  if (found == 0) stop 3
end program solver_f08
