/* Rank 1 asks how long a message is before it receives it, once more than rank 0 sends. */
#include <mpi.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int rank, value = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int step = 0; step < 1000; step++) {
        usleep(20000);
        if (rank == 0)
            MPI_Send(&step, 1, MPI_INT, 1, 9, MPI_COMM_WORLD);
        for (int one = 0; rank == 1 && one < 1 + (step == 40); one++) {
            MPI_Status status;
            int length;
            MPI_Probe(0, 9, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_INT, &length);
            MPI_Recv(&value, length, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
