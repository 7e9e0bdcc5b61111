/* See failures.h. */
#include "failures.h"

bool sapwood_has_begun_work(int error)
{
    int class = MPI_SUCCESS;
    if (sapwood_library.error_class(error, &class) != MPI_SUCCESS)
        return false;
    /* A wrong argument has a class of its own. A message that is too long gives MPI_ERR_TRUNCATE or, as one of
     * several, MPI_ERR_IN_STATUS; of MPICH one that is too short gives MPI_ERR_OTHER, and so does an error of which
     * a process learns from another one. */
    return class == MPI_ERR_TRUNCATE || class == MPI_ERR_IN_STATUS || class == MPI_ERR_OTHER || class == MPI_ERR_INTERN;
}

void sapwood_collective_failed(MPI_Comm comm, struct sapwood_failed_collective failed)
{
    if (sapwood_has_begun_work(failed.error))
        sapwood_collective(sapwood_activity_own(), failed.function, failed.kind, comm, failed.root, failed.bytes,
                           failed.begin, failed.ticks);
    sapwood_space_number_lost(comm);
}
