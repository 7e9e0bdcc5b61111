/* MPI_Pcontrol, which no wrapper is generated for: its arguments after the first are any.
 *
 * A program switches counting off with level 0 and on with 1. Other levels change nothing: counts are
 * in memory that the leaf reads at any time, so that level 2 has nothing to flush. */
#define _GNU_SOURCE
#include <mpi.h>

#include "chain.h"
#include "control.h"
#include "visibility.h"

typedef int pcontrol(const int level, ...);

SAPWOOD_EXPORT int MPI_Pcontrol(const int level, ...)
{
    sapwood_control_level(level);
    /* A tool behind this one learns the level, and no further arguments. */
    pcontrol *next = (pcontrol *)sapwood_chained("MPI_Pcontrol", "PMPI_Pcontrol");
    return next != NULL ? next(level) : MPI_SUCCESS;
}

/* As mpif.h and the module mpi call it. */
SAPWOOD_EXPORT void mpi_pcontrol_(const int *level)
{
    MPI_Pcontrol(*level);
}

/* As the module mpi_f08 of Open MPI does. */
SAPWOOD_EXPORT void mpi_pcontrol_f08_(const int *level)
{
    MPI_Pcontrol(*level);
}
