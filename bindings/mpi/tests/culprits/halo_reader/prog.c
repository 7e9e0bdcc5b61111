/* Each rank exchanges with two neighbours; one reads its input from a pipe that runs dry. */
#include <mpi.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int rank, size, halo[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int input[2];
    char word = 0;
    if (pipe(input) != 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    for (int step = 0; step < 1000; step++) {
        MPI_Request requests[4];
        usleep(20000);
        if (rank == 2 && step < 40 && write(input[1], &word, 1) != 1)
            MPI_Abort(MPI_COMM_WORLD, 1);
        if (rank == 2 && read(input[0], &word, 1) != 1)
            MPI_Abort(MPI_COMM_WORLD, 1);
        MPI_Irecv(&halo[0], 1, MPI_INT, left, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(&halo[1], 1, MPI_INT, right, 2, MPI_COMM_WORLD, &requests[1]);
        MPI_Isend(&step, 1, MPI_INT, right, 1, MPI_COMM_WORLD, &requests[2]);
        MPI_Isend(&step, 1, MPI_INT, left, 2, MPI_COMM_WORLD, &requests[3]);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
