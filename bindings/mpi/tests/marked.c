/* Marks iterations by sapwood_round(), and ends as its second argument says.
 *
 *     marked MARKS finalize|code|absent|abort|exit|kill|return
 *
 * Each rank makes MARKS iterations with k calls of MPI_Barrier in the k-th. Then rank 1
 * ends in its way, once all others wait for it inside MPI_Sendrecv. `code` is the exit code 3 of all ranks after
 * MPI_Finalize; `absent` has rank 1 stay out of MPI_Finalize, in which the others wait. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sapwood_mpi.h"

int main(int argc, char **argv)
{
    int rank, marks = argc > 1 ? atoi(argv[1]) : 1;
    const char *end = argc > 2 ? argv[2] : "finalize";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int mark = 1; mark <= marks; mark++) {
        sapwood_region_begin("iteration");
        for (int i = 0; i < mark; i++)
            MPI_Barrier(MPI_COMM_WORLD);
        sapwood_region_end("iteration");
        sapwood_round();
        /* Four marks that the leaf has not seen are kept: it is not to miss one on a busy machine. */
        usleep(100000);
    }
    if (strcmp(end, "finalize") == 0) {
        MPI_Finalize();
        return 0;
    }
    if (strcmp(end, "code") == 0) {
        MPI_Finalize();
        return 3;
    }
    if (strcmp(end, "absent") == 0) {
        if (rank == 1)
            pause(); /* until it is ended */
        MPI_Finalize();
        return 0;
    }
    int size, token = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank != 1) /* the receive never completes */
        MPI_Sendrecv(&rank, 1, MPI_INT, 1, 0, &token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    for (int other = 1; other < size; other++)
        MPI_Recv(&token, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (strcmp(end, "abort") == 0)
        MPI_Abort(MPI_COMM_WORLD, 13);
    if (strcmp(end, "exit") == 0)
        exit(7);
    if (strcmp(end, "kill") == 0)
        raise(SIGKILL);
    return 0;
}
