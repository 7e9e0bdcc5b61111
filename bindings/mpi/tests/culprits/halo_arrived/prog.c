/* A rank receives a word and sends a block to another one, which reads its input from a pipe that runs dry. */
#include <mpi.h>
#include <unistd.h>
#define BLOCK (1 << 22)
static char block[BLOCK];
int main(int argc, char **argv) {
    int rank, part, input[2];
    char word = 0;
    MPI_Comm halo;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &halo);
    MPI_Comm_set_name(halo, "halo");
    if (pipe(input) != 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int step = 0; step < 1000000; step++) {
        usleep(20000);
        if (rank == 0) {
            MPI_Request requests[2];
            MPI_Irecv(&part, 1, MPI_INT, 1, 7, halo, &requests[0]);
            MPI_Isend(block, BLOCK, MPI_CHAR, 2, 9, halo, &requests[1]);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            MPI_Send(&step, 1, MPI_INT, 1, 8, halo);
            MPI_Send(&step, 1, MPI_INT, 3, 8, halo);
        } else if (rank == 2) {
            if (step < 40 && write(input[1], &word, 1) != 1)
                MPI_Abort(MPI_COMM_WORLD, 1);
            if (read(input[0], &word, 1) != 1)
                MPI_Abort(MPI_COMM_WORLD, 1);
            MPI_Recv(block, BLOCK, MPI_CHAR, 0, 9, halo, MPI_STATUS_IGNORE);
        } else {
            if (rank == 1)
                MPI_Send(&step, 1, MPI_INT, 0, 7, halo);
            MPI_Recv(&part, 1, MPI_INT, 0, 8, halo, MPI_STATUS_IGNORE);
        }
    }
    MPI_Finalize();
    return 0;
}
