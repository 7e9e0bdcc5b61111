/* Ranks that play different roles: rank 0 sends to all others, every third rank writes, the others
 * compute, the last of them for longest. filters.py compares what comes of it. */
#include <mpi.h>
#include <unistd.h>

#include "sapwood_mpi.h"

enum { TURNS = 20, LAST_IS_SLOWER = 8, MICROSECONDS = 400 };

static void compute(const char *region, int rank, int size)
{
    sapwood_region_begin(region);
    usleep(MICROSECONDS * (rank == size - 1 ? LAST_IS_SLOWER : 1));
    sapwood_region_end(region);
}

int main(int argc, char **argv)
{
    int rank, size, token = 0;
    double sum = 0, value = 1;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int turn = 0; turn < TURNS; turn++) {
        if (rank == 0) {
            for (int other = 1; other < size; other++)
                MPI_Send(&token, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
        } else {
            MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            compute(rank % 3 == 1 ? "io/write" : "solve/halo", rank, size);
            compute("solve/norm", rank, size);
        }
        MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return sum == size ? 0 : 1;
}
