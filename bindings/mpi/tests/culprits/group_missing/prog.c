/* Four of five ranks make a communicator of their own in each step; one of them leaves it out once. */
#include <mpi.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int last = 4;
    MPI_Group all, active;
    MPI_Comm part;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_excl(all, 1, &last, &active);
    for (int step = 0; step < 1000; step++) {
        usleep(20000);
        if (rank != last && !(rank == 3 && step == 40)) {
            MPI_Comm_create_group(MPI_COMM_WORLD, active, 7, &part);
            MPI_Comm_free(&part);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
