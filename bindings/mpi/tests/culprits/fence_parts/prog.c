/* Two parts of the job have a window each, on which one makes twice as many fences. */
#include <mpi.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int rank, upper, *cells;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm part;
    MPI_Win window;
    upper = rank >= 3;
    MPI_Comm_split(MPI_COMM_WORLD, upper, rank, &part);
    /* One part after the other: Open MPI names the file of a window after the communicator's
       number, which both parts have in common, and removes it once all have opened it. */
    for (int turn = 0; turn < 2; turn++) {
        if (turn == upper)
            MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, part, &cells, &window);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    for (int step = 0; step < 1000; step++) {
        usleep(20000);
        MPI_Win_fence(0, window);
        if (!upper && !(rank == 1 && step == 40))
            MPI_Win_fence(0, window);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
