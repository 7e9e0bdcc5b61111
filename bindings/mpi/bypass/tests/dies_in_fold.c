/* The last rank to arrive dies while it folds: the root computes the result from the operands.
 *
 * The program exports its own PMPI_Reduce_local, which the library finds first. Without a
 * launcher that lets survivors live, the job ends instead.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <mpi.h>

/* The library tries operations out in MPI_Init, when there is no last rank yet. */
static int rank = -1, size = -1;

int PMPI_Reduce_local(const void *in, void *inout, int count, MPI_Datatype type, MPI_Op op)
{
    static int (*next)(const void *, void *, int, MPI_Datatype, MPI_Op);
    if (rank >= 0 && rank == size - 1)
        raise(SIGKILL);
    if (next == NULL)
        next = (int (*)(const void *, void *, int, MPI_Datatype, MPI_Op))dlsym(RTLD_NEXT, "PMPI_Reduce_local");
    return next(in, inout, count, type, op);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    long value = rank + 1, sum = 0;
    struct timespec late = {0, 200000000};
    if (rank >= 0 && rank == size - 1)
        nanosleep(&late, NULL);
    MPI_Reduce(&value, &sum, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("sum %ld of %d\n", sum, size);
        fflush(stdout);
    }
    /* MPI cannot end with a dead rank; the launcher ends those that wait here. */
    if (rank != 0) {
        alarm(20);
        pause();
    }
    MPI_Abort(MPI_COMM_WORLD, 0);
}
