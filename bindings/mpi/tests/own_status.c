/* Stands for an MPI that has the count of a status elsewhere than MPICH: no trial can set one. */
#include <stdio.h>

#include <mpi.h>

int PMPI_Status_set_elements_c(MPI_Status *status, MPI_Datatype type, MPI_Count count)
{
    (void)status, (void)type, (void)count;
    puts("a trial of the status was refused");
    return MPI_ERR_OTHER;
}
