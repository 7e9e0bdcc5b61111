/* Large-count functions (MPI 4). */
#include <mpi.h>

int main(int argc, char **argv)
{
    int rank, size, out[64] = {0}, in[64];
    MPI_Count counts[16];
    MPI_Aint places[16];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < size; i++) {
        counts[i] = 2;
        places[i] = 2 * i;
    }
    for (int i = 0; i < 10; i++)
        MPI_Allreduce_c(out, in, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Alltoallv_c(out, counts, places, MPI_INT, in, counts, places, MPI_INT, MPI_COMM_WORLD);
    MPI_Allgatherv_c(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, counts, places, MPI_INT, MPI_COMM_WORLD);
    MPI_Sendrecv_c(out, 4, MPI_INT, rank, 0, in, 4, MPI_INT, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
