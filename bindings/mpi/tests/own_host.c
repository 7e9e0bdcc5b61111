/* An MPI that sees no memory that ranks share, so that each is on a host of its own. It is preloaded behind the library
 * that divides the world, which asks by the second name, and before a program that asks by the first one. */
#include <mpi.h>

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *part)
{
    return PMPI_Comm_split_type(comm, type, key, info, part);
}

int PMPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *part)
{
    int rank;
    (void)type, (void)info;
    PMPI_Comm_rank(comm, &rank);
    return PMPI_Comm_split(comm, rank, key, part);
}
