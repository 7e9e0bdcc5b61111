/* Three ranks that compute join the one that writes output, which has no output to write. */
#include <mpi.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int rank, writes;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm part, both;
    writes = rank == 3;
    MPI_Comm_split(MPI_COMM_WORLD, writes, rank, &part);
    for (int step = 0; step < 1000; step++) {
        usleep(20000);
        if (!(writes && step == 40)) {
            MPI_Intercomm_create(part, 0, MPI_COMM_WORLD, writes ? 0 : 3, 5, &both);
            MPI_Comm_free(&both);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
