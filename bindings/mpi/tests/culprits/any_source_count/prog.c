/* Workers send their results; the one that collects them counts one too many. */
#include <mpi.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int rank, size, value = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < 1000; round++) {
        int pieces = 5 * (size - 1) + (round == 10);
        for (int piece = 0; rank != 0 && piece < 5; piece++) {
            usleep(10000);
            MPI_Send(&piece, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
        }
        for (int piece = 0; rank == 0 && piece < pieces; piece++)
            MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
