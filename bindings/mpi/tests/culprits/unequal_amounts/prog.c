/* Of one reduction the last rank gives less than the others; it ends, and its result is wrong. */
#include <mpi.h>

int main(int argc, char **argv)
{
    int rank, size;
    double own[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, all[10] = {0};
    MPI_Comm row;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &row);
    MPI_Comm_set_name(row, "row");
    for (int step = 0; step < 20; step++) {
        /* It sends to one other rank and receives from none, so that what it sends fits. */
        int count = rank == size - 1 && step == 11 ? 9 : 10;
        MPI_Reduce(own, all, count, MPI_DOUBLE, MPI_SUM, 0, row);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Comm_free(&row);
    MPI_Finalize();
    return 0;
}
