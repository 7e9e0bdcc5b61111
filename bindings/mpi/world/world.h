/* The world of the program when some ranks of the job belong to the tool.
 *
 *   SAPWOOD_MPI_WORLD_TOOLS     how many ranks the tool takes, the last ones
 *   SAPWOOD_MPI_WORLD_HOSTS     names of the job's hosts in the order of the tree's leaves,
 *                               divided by the character 0x1f: the tool takes that many
 *                               ranks of each host, the last ones of it. Unset where all
 *                               ranks are on one host
 *   SAPWOOD_JOIN                with these hosts: where the join file will be, in a folder
 *                               that the front-end has made on its host (join.c)
 *   SAPWOOD_MPI_WORLD_COMMAND   what each of them starts: an absolute path and its
 *                               arguments, divided by the character 0x1f; may be unset.
 *                               It finds its number among the tool ranks in SAPWOOD_RANK,
 *                               among those of its host in SAPWOOD_MPI_LEAF, and the rank's
 *                               process in SAPWOOD_MPI_WORLD_PROCESS. With hosts,
 *                               SAPWOOD_JOIN names the join file for it
 *
 * MPI_Init divides MPI_COMM_WORLD. The program's ranks go on with a communicator of
 * their own in its place: wrappers of every function that takes a communicator put
 * it there, by the MPI_ and by the PMPI_ name, so that Fortran, Python and other
 * tools see it too. A tool rank never returns from MPI_Init: it starts its command,
 * sleeps until the program calls MPI_Finalize, and ends with it.
 */
#ifndef SAPWOOD_WORLD_H
#define SAPWOOD_WORLD_H

#include <stdbool.h>

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

/* Divides the arguments of the command, and the names of hosts: none of them holds it. */
#define SAPWOOD_WORLD_DIVIDER '\x1f'

/* Of the message that ends the tool's ranks. The program has no access to the
 * communicator that it travels on. */
enum { SAPWOOD_WORLD_END_TAG = 7 };

enum {
    /* Exit code of bad input. */
    SAPWOOD_WORLD_BAD_INPUT = 2,
};

/* A rank of the tool among the others. */
struct sapwood_world_tool {
    MPI_Comm all;   /* the ranks of the tool */
    int leaf;       /* which leaf of the tree its command is */
    int on_host;    /* its number among those of its host */
    bool has_hosts; /* the tool has ranks of each host */
};

/* This rank is the tool's: never returns. */
SAPWOOD_HIDDEN _Noreturn void sapwood_world_be_tool(const struct sapwood_world_tool *tool);

/* The ranks of a communicator that are on this host, in the same order. All of its ranks call it; the first call
 * decides for later ones whether MPI sees the memory that ranks share, or the names and IDs of hosts count. */
SAPWOOD_HIDDEN MPI_Comm sapwood_world_on_host(MPI_Comm comm);

/* Ends the job for bad input that one line has said, once the launcher has read that line, or after a moment. */
SAPWOOD_HIDDEN void sapwood_world_refuse(void);

/* Whether the tool has ranks of each host. */
SAPWOOD_HIDDEN bool sapwood_world_has_hosts(void);
/* Whether this rank is one of the last `tools` ranks of its host. All ranks of the world
 * call it; a host that has no other ranks ends the job with one line. */
SAPWOOD_HIDDEN bool sapwood_world_is_last_of_host(int tools);
/* What a rank of the tool is; `tools` are on each host. All of these call it. */
SAPWOOD_HIDDEN struct sapwood_world_tool sapwood_world_tool_of_host(MPI_Comm all, int tools);

/* The descriptor at which a command finds the key of its join file, which names it by its path. */
#define SAPWOOD_WORLD_KEY_FD 4
#define SAPWOOD_WORLD_KEY_PATH "/proc/self/fd/4"

/* The join file on its way to a rank of the tool, and the descriptors of it and of its key there. */
struct sapwood_world_join {
    MPI_Comm all; /* the ranks of the tool */
    int own;      /* this one among them */
    int reader;   /* which of them can read the join file; -1 none */
    bool is_over; /* what is sent has been sent, or received */
    int points;
    int key;
};

/* The tool's ranks agree on the one that reads the file. */
SAPWOOD_HIDDEN void sapwood_world_join_open(struct sapwood_world_join *join, MPI_Comm all);
/* Whether the file has come by now: true once, with both descriptors. Does not wait. */
SAPWOOD_HIDDEN bool sapwood_world_join_look(struct sapwood_world_join *join);
/* The program ends: no rank of the tool waits for the file any more. All of these call it. */
SAPWOOD_HIDDEN void sapwood_world_join_close(struct sapwood_world_join *join);

/* MPI_Init has succeeded. */
SAPWOOD_HIDDEN void sapwood_world_divide(void);
/* The program calls MPI_Finalize. */
SAPWOOD_HIDDEN void sapwood_world_end(void);

#endif
