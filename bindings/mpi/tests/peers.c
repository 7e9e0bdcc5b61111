/* Sends to known peers on the world and on a communicator with a name, from known lines. */
#include <mpi.h>

enum { RING = 3, RING_BYTES = 100, HALF = 2 };

static void __attribute__((noinline)) ring(int rank, int size)
{
    char out[RING_BYTES] = {0}, in[RING_BYTES];
    for (int i = 0; i < RING; i++)
        MPI_Sendrecv(out, RING_BYTES, MPI_BYTE, (rank + 1) % size, 7, in, RING_BYTES, MPI_BYTE, /* the ring's line */
                     (rank + size - 1) % size, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void __attribute__((noinline)) half(int rank)
{
    MPI_Comm comm, copy;
    int own, size;
    double one = 1, other = 0;
    MPI_Request request;
    /* Its ranks are in reverse order. */
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &comm);
    MPI_Comm_set_name(comm, "half \x01\xff<b>");
    MPI_Comm_rank(comm, &own);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < HALF; i++) {
        MPI_Isend(&one, 1, MPI_DOUBLE, (own + 1) % size, 0, comm, &request);
        MPI_Recv(&other, 1, MPI_DOUBLE, (own + size - 1) % size, 0, comm, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    /* The handle may come back for another communicator. */
    MPI_Comm_free(&comm);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &copy);
    MPI_Comm_rank(copy, &own);
    MPI_Comm_size(copy, &size);
    MPI_Sendrecv(&one, 1, MPI_DOUBLE, (own + 1) % size, 0, &other, 1, MPI_DOUBLE, (own + size - 1) % size, 0, copy,
                 MPI_STATUS_IGNORE);
    MPI_Comm_free(&copy);
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    ring(rank, size);
    half(rank);
    MPI_Finalize();
    return 0;
}
