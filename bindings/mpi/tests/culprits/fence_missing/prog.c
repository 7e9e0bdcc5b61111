/* Each step is an epoch between two fences; a rank without changes skips the second one once. */
#include <mpi.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int rank, sum, *cells;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win window;
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &cells, &window);
    for (int step = 0; step < 1000; step++) {
        int changes = !(rank == 1 && step == 40);
        usleep(20000);
        MPI_Win_fence(0, window);
        if (changes)
            MPI_Put(&step, 1, MPI_INT, rank, 0, 1, MPI_INT, window);
        if (changes)
            MPI_Win_fence(0, window);
        MPI_Allreduce(&step, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
