/* Blocks are sent to all, as many as each rank believes that there are; then they are checked. */
#include <mpi.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int rank, block = 0, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int step = 0; step < 1000; step++) {
        int blocks = 3 + (rank == 2 && step == 40);
        usleep(20000);
        for (int one = 0; one < blocks; one++)
            MPI_Bcast(&block, 1, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Allreduce(&block, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
