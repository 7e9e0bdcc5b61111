/* MPI that only a plug-in is linked to. Loaded with local scope, as Python loads
 * its extension modules, it keeps the MPI library out of the global scope. */
#include <mpi.h>
#include <stddef.h>

__attribute__((visibility("default"))) int solve(void)
{
    double one = 1, sum;
    if (MPI_Init(NULL, NULL) != MPI_SUCCESS)
        return 1;
    for (int i = 0; i < 5; i++)
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return MPI_Finalize();
}
