/* The world of the program when some ranks of the job belong to the tool.
 *
 *   SAPWOOD_MPI_WORLD_TOOLS     how many ranks the tool takes, the last ones
 *   SAPWOOD_MPI_WORLD_COMMAND   what each of them starts: an absolute path and its
 *                               arguments, divided by the character 0x1f; may be unset.
 *                               It finds its number among the tool ranks in SAPWOOD_RANK,
 *                               and among those of its host in SAPWOOD_MPI_LEAF
 *
 * MPI_Init divides MPI_COMM_WORLD. The program's ranks go on with a communicator of
 * their own in its place: wrappers of every function that takes a communicator put
 * it there, by the MPI_ and by the PMPI_ name, so that Fortran, Python and other
 * tools see it too. A tool rank never returns from MPI_Init: it starts its command,
 * sleeps until the program calls MPI_Finalize, and ends with it.
 */
#ifndef SAPWOOD_WORLD_H
#define SAPWOOD_WORLD_H

#include <mpi.h>

#include "library.h"

/* What stands in the place of MPI_COMM_WORLD: NULL before MPI_Init and where no rank
 * is the tool's. Open MPI's handles are addresses, MPICH's are numbers other than 0. */
extern SAPWOOD_HIDDEN MPI_Comm sapwood_world_program;
/* The handle of MPI_COMM_WORLD. */
extern SAPWOOD_HIDDEN MPI_Comm sapwood_world_whole;

static SAPWOOD_HOT MPI_Comm sapwood_world(MPI_Comm comm)
{
    return comm == sapwood_world_whole && sapwood_world_program ? sapwood_world_program : comm;
}

/* The function of the MPI library behind this one; one that returns MPI_ERR_OTHER
 * where the library lacks it. */
SAPWOOD_HIDDEN void *sapwood_world_next(const char *name);

/* A handle of the library: Open MPI's are addresses of its variables, which the linker
 * must not be told of. */
#if defined(SAPWOOD_FOR_OPENMPI)
#define SAPWOOD_WORLD_HANDLE(constant, variable) ((__typeof__(constant))sapwood_symbol(#variable))
#else
#define SAPWOOD_WORLD_HANDLE(constant, variable) (constant)
#endif
/* A function of the MPI library, looked up at each use. */
#define SAPWOOD_BEHIND(name) ((__typeof__(name) *)sapwood_world_next(#name))

/* Of the message that ends the tool's ranks. The program has no access to the
 * communicator that it travels on. */
enum { SAPWOOD_WORLD_END_TAG = 7 };

/* This rank is the tool's, of these numbers among them and among those of its host:
 * never returns. */
SAPWOOD_HIDDEN _Noreturn void sapwood_world_be_tool(int tool, int on_host);

/* MPI_Init has succeeded. */
SAPWOOD_HIDDEN void sapwood_world_divide(void);
/* The program calls MPI_Finalize. */
SAPWOOD_HIDDEN void sapwood_world_end(void);

#endif
