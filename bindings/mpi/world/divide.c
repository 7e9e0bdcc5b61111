/* Divides the world at MPI_Init and lets the tool's ranks end with the program's;
 * see world.h. */
#include "world.h"

#include <stdint.h>
#include <stdlib.h>

#include "say.h"

enum {
    /* Exit code of bad input. */
    BAD_INPUT = 2,
};

MPI_Comm sapwood_world_program;
MPI_Comm sapwood_world_whole;

static int tools;
/* Deletes the program's world when the last attribute of MPI_COMM_SELF goes. */
static int keyval;

static int tools_wanted(void)
{
    const char *text = getenv("SAPWOOD_MPI_WORLD_TOOLS");
    if (text == NULL || *text == '\0')
        return 0;
    char *end;
    long number = strtol(text, &end, 10);
    if (*end != '\0' || number < 1 || number > INT32_MAX) {
        sapwood_say("SAPWOOD_MPI_WORLD_TOOLS is '%.40s' and names no number of ranks; the program has all of them", text);
        return 0;
    }
    return (int)number;
}

static int copy_nothing(MPI_Comm from, int key, void *extra, void *value, void *copy, int *is_copied)
{
    (void)from, (void)key, (void)extra, (void)value, (void)copy;
    *is_copied = 0;
    return MPI_SUCCESS;
}

static int free_program_world(MPI_Comm self, int key, void *value, void *extra)
{
    (void)self, (void)key, (void)value, (void)extra;
    MPI_Comm program = sapwood_world_program;
    if (program == 0)
        return MPI_SUCCESS;
    /* Its attributes' call-backs may still use MPI_COMM_WORLD, which has the same
     * numbers of the program's ranks. */
    int outcome = SAPWOOD_BEHIND(PMPI_Comm_free)(&program);
    sapwood_world_program = 0;
    return outcome;
}

/* Processes that the program spawns have a world of their own, without tool ranks. */
static int is_spawned(void)
{
    MPI_Comm none = SAPWOOD_WORLD_HANDLE(MPI_COMM_NULL, ompi_mpi_comm_null), parent = none;
    SAPWOOD_BEHIND(PMPI_Comm_get_parent)(&parent);
    return parent != none;
}

/* The number of this rank among those of a communicator on its host. */
static int number_on_host(MPI_Comm comm)
{
    MPI_Comm host;
    int number = 0;
    MPI_Info none = SAPWOOD_WORLD_HANDLE(MPI_INFO_NULL, ompi_mpi_info_null);
    SAPWOOD_BEHIND(PMPI_Comm_split_type)(comm, MPI_COMM_TYPE_SHARED, 0, none, &host);
    SAPWOOD_BEHIND(PMPI_Comm_rank)(host, &number);
    SAPWOOD_BEHIND(PMPI_Comm_free)(&host);
    return number;
}

static void refuse_too_few(int rank, int size)
{
    if (rank == 0)
        sapwood_say("the tool takes the last %d ranks, and the program has %d in all: none is left for it; start "
                    "it on more ranks",
                    tools, size);
    SAPWOOD_BEHIND(PMPI_Abort)(sapwood_world_whole, BAD_INPUT);
}

void sapwood_world_divide(void)
{
    tools = tools_wanted();
    sapwood_world_whole = SAPWOOD_WORLD_HANDLE(MPI_COMM_WORLD, ompi_mpi_comm_world);
    if (tools == 0 || sapwood_world_program || is_spawned())
        return;
    int rank, size;
    SAPWOOD_BEHIND(PMPI_Comm_rank)(sapwood_world_whole, &rank);
    SAPWOOD_BEHIND(PMPI_Comm_size)(sapwood_world_whole, &size);
    if (tools >= size)
        refuse_too_few(rank, size);
    int is_tool = rank >= size - tools;
    MPI_Comm half;
    SAPWOOD_BEHIND(PMPI_Comm_split)(sapwood_world_whole, is_tool, rank, &half);
    if (is_tool)
        sapwood_world_be_tool(rank - (size - tools), number_on_host(half));
    SAPWOOD_BEHIND(PMPI_Comm_set_name)(half, "MPI_COMM_WORLD");
    /* Attributes of MPI_COMM_SELF are deleted at the begin of MPI_Finalize, the last
     * one first: the program's own go before this one. */
    SAPWOOD_BEHIND(PMPI_Comm_create_keyval)(copy_nothing, free_program_world, &keyval, NULL);
    SAPWOOD_BEHIND(PMPI_Comm_set_attr)(SAPWOOD_WORLD_HANDLE(MPI_COMM_SELF, ompi_mpi_comm_self), keyval, NULL);
    sapwood_world_program = half;
}

void sapwood_world_end(void)
{
    int rank, program_size;
    if (!sapwood_world_program || SAPWOOD_BEHIND(PMPI_Comm_rank)(sapwood_world_program, &rank) != MPI_SUCCESS)
        return;
    SAPWOOD_BEHIND(PMPI_Comm_size)(sapwood_world_program, &program_size);
    MPI_Datatype byte = SAPWOOD_WORLD_HANDLE(MPI_BYTE, ompi_mpi_byte);
    for (int tool = 0; rank == 0 && tool < tools; tool++)
        SAPWOOD_BEHIND(PMPI_Send)(NULL, 0, byte, program_size + tool, SAPWOOD_WORLD_END_TAG, sapwood_world_whole);
}
