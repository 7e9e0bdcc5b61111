/* A sparse exchange that ends by a non-blocking barrier, for which each rank tests beside other work. */
#include <mpi.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm nbx;
    MPI_Comm_dup(MPI_COMM_WORLD, &nbx);
    MPI_Comm_set_name(nbx, "nbx");
    for (int step = 0; step < 1000; step++) {
        int done = rank == 3 && step == 40;
        MPI_Request request;
        usleep(20000);
        if (!done)
            MPI_Ibarrier(nbx, &request);
        while (!done) {
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
            usleep(2000);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
