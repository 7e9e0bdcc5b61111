/* Another tool: counts reductions by PMPI, and says at the end how many each rank made. */
#include <mpi.h>
#include <stdio.h>

static int reductions;

int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    reductions++;
    return PMPI_Allreduce(in, out, count, type, op, comm);
}

int MPI_Finalize(void)
{
    fprintf(stdout, "tool: %d reductions\n", reductions);
    fflush(stdout);
    return PMPI_Finalize();
}
