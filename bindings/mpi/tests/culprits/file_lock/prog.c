/* Rank 1 locks its log before each output, and once does not give the lock back. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <mpi.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char path[64];
    FILE *log = tmpfile();                    /* has no name, and is gone with the process */
    if (log == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fileno(log));
    for (int step = 0; step < 1000; step++) {
        usleep(20000);
        if (rank == 1) {
            int own = open(path, O_RDWR);     /* another description of the same file */
            flock(own, LOCK_EX);
            if (step != 40)
                close(own);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
