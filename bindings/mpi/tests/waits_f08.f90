! Ranks 0 and 1 receive from each other on a communicator of theirs, each with another tag, and neither has sent;
! rank 2 waits for both in a barrier.
program waits_f08
  use mpi_f08
  implicit none
  integer, parameter :: first_tag = 17, second_tag = 23
  integer :: rank, word
  type(MPI_Comm) :: pair

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, pair)
  call MPI_Comm_set_name(pair, "pair")
  call MPI_Barrier(MPI_COMM_WORLD)
  word = rank
  if (rank == 0) then
    call MPI_Recv(word, 1, MPI_INTEGER, 1, first_tag, pair, MPI_STATUS_IGNORE)
    call MPI_Send(word, 1, MPI_INTEGER, 1, second_tag, pair)
  else if (rank == 1) then
    call MPI_Recv(word, 1, MPI_INTEGER, 0, second_tag, pair, MPI_STATUS_IGNORE)
    call MPI_Send(word, 1, MPI_INTEGER, 0, first_tag, pair)
  end if
  call MPI_Barrier(MPI_COMM_WORLD)
  call MPI_Comm_free(pair)
  call MPI_Finalize()
end program waits_f08
