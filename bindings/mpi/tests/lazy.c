/* Initialises MPI past the shim, as Fortran bindings and other tools do. */
#include <mpi.h>

int main(int argc, char **argv)
{
    int flag;
    double one = 1, sum;
    MPI_Initialized(&flag); /* before the start: not counted */
    PMPI_Init(&argc, &argv);
    for (int i = 0; i < 5; i++)
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    PMPI_Finalize();
    return 0;
}
