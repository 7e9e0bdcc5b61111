/* Two ranks free their two windows in another order. */
#include <mpi.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int rank, parts[2] = {0, 0};
    MPI_Win windows[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 2; i++)
        MPI_Win_create(&parts[i], sizeof parts[i], sizeof parts[i], MPI_INFO_NULL, MPI_COMM_WORLD, &windows[i]);
    for (int step = 0; step < 40; step++) {
        usleep(20000);
        MPI_Win_fence(0, windows[0]);
        MPI_Win_fence(0, windows[1]);
    }
    MPI_Win_free(&windows[rank]);
    MPI_Win_free(&windows[1 - rank]);
    MPI_Finalize();
    return 0;
}
