/* Ranks are parted anew every ten steps; once the rank without cells leaves that out. */
#include <mpi.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int rank, sum, cells;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int step = 0; step < 1000; step++) {
        usleep(20000);
        cells = !(rank == 2 && step == 40);
        if (step % 10 == 0 && cells > 0) {
            MPI_Comm part;
            MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &part);
            MPI_Comm_free(&part);
        }
        MPI_Allreduce(&cells, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
