/* A ring of sends, each of which is waited for before the receive; messages grow. */
#include <stdlib.h>
#include <mpi.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *out = calloc(1, 1 << 22), *in = calloc(1, 1 << 22);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int bytes = 64; bytes <= 1 << 22; bytes *= 4) {
        MPI_Request request;
        usleep(100000);
        MPI_Isend(out, bytes, MPI_CHAR, (rank + 1) % size, 1, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Recv(in, bytes, MPI_CHAR, (rank + size - 1) % size, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
