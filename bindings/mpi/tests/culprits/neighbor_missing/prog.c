/* A ring whose ranks gather from both neighbours; the rank whose border has not changed skips that once. */
#include <mpi.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int rank, size, sum, around[2], periods = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm ring;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periods, 0, &ring);
    MPI_Comm_set_name(ring, "ring");
    for (int step = 0; step < 1000; step++) {
        usleep(20000);
        if (!(rank == 2 && step == 40))
            MPI_Neighbor_allgather(&step, 1, MPI_INT, around, 1, MPI_INT, ring);
        MPI_Allreduce(&step, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
