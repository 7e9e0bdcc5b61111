/* An MPI that sees no memory that ranks share, so that each is on a host of its own. It is preloaded behind the library
 * that divides the world, which asks by this name. */
#include <mpi.h>

int PMPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *part)
{
    int rank;
    (void)type, (void)info;
    PMPI_Comm_rank(comm, &rank);
    return PMPI_Comm_split(comm, rank, key, part);
}
