/* At one broadcast rank 1 gives itself as the root and goes on to the barrier; what is large waits. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, bytes = 8 << 20;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *buffer = calloc(1, (size_t)bytes);
    for (int step = 0; step < 100; step++) {
        MPI_Bcast(buffer, bytes, MPI_CHAR, rank == 1 && step == 10 ? 1 : 0, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
