/* Two halves of the job meet in each step; a rank of one reads its input from a pipe that runs dry. */
#include <mpi.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int rank, upper, input[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char word = 0;
    MPI_Comm half, both;
    if (pipe(input) != 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    upper = rank >= 2;
    MPI_Comm_split(MPI_COMM_WORLD, upper, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, upper ? 0 : 2, 5, &both);
    for (int step = 0; step < 1000; step++) {
        usleep(20000);
        if (rank == 3 && step < 40 && write(input[1], &word, 1) != 1)
            MPI_Abort(MPI_COMM_WORLD, 1);
        if (rank == 3 && read(input[0], &word, 1) != 1)
            MPI_Abort(MPI_COMM_WORLD, 1);
        MPI_Barrier(both);
    }
    MPI_Finalize();
    return 0;
}
