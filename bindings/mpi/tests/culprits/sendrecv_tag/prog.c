/* Each rank sends to the right and receives from the left; one uses a tag that is one off, once. */
#include <mpi.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int rank, size, sum, from_left;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    for (int step = 0; step < 1000; step++) {
        int expected = step + (rank == 2 && step == 40);
        usleep(20000);
        MPI_Sendrecv(&step, 1, MPI_INT, right, step, &from_left, 1, MPI_INT, left, expected, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Allreduce(&from_left, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
