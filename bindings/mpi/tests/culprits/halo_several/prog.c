/* A halo comes from two ranks, one of which reads its input from a pipe that runs dry; rank 0 has other work. */
#include <mpi.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int rank, size, parts[2], input[2];
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
            MPI_Comm_size(halo, &size);
        } else if (rank == 3) {
            MPI_Request requests[2];
            MPI_Irecv(&parts[0], 1, MPI_INT, 1, 7, halo, &requests[0]);
            MPI_Irecv(&parts[1], 1, MPI_INT, 2, 9, halo, &requests[1]);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            for (int to = 1; to < 3; to++)
                MPI_Send(&step, 1, MPI_INT, to, 8, halo);
        } else {
            if (rank == 2 && step < 40 && write(input[1], &word, 1) != 1)
                MPI_Abort(MPI_COMM_WORLD, 1);
            if (rank == 2 && read(input[0], &word, 1) != 1)
                MPI_Abort(MPI_COMM_WORLD, 1);
            MPI_Send(&step, 1, MPI_INT, 3, rank == 1 ? 7 : 9, halo);
            MPI_Recv(parts, 1, MPI_INT, 3, 8, halo, MPI_STATUS_IGNORE);
        }
    }
    MPI_Finalize();
    return 0;
}
