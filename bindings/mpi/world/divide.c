/* Divides the world at MPI_Init and lets the tool's ranks end with the program's;
 * see world.h. */
#define _GNU_SOURCE
#include "world.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "say.h"

enum {
    /* How often it is looked whether a launcher has read a line, and how long a look takes. */
    LOOKS_MAX = 200,
    LOOK_NS = 5000000,
};

MPI_Comm sapwood_world_program;
MPI_Comm sapwood_world_whole;

/* How many ranks are the tool's: of the job, or of each host. */
static int tools;
/* At rank 0, where the tool has ranks of each host: which ranks these are. */
static int *tool_ranks;
static int tool_count;
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

/* Whether standard error is a pipe that holds something. */
static bool is_unread(void)
{
    struct stat about;
    int length = 0;
    bool is_pipe = fstat(STDERR_FILENO, &about) == 0 && S_ISFIFO(about.st_mode);
    return is_pipe && ioctl(STDERR_FILENO, FIONREAD, &length) == 0 && length > 0;
}

void sapwood_world_refuse(void)
{
    /* A launcher may throw away at an abort what it has not read. */
    const struct timespec look = {.tv_nsec = LOOK_NS};
    for (int looks = 0; looks < LOOKS_MAX && is_unread(); looks++)
        nanosleep(&look, NULL);
    SAPWOOD_BEHIND(PMPI_Abort)(sapwood_world_whole, SAPWOOD_WORLD_BAD_INPUT);
}

/* The number of this rank among those of a communicator on its host. */
static int number_on_host(MPI_Comm comm)
{
    MPI_Comm host = sapwood_world_on_host(comm);
    int number = 0;
    SAPWOOD_BEHIND(PMPI_Comm_rank)(host, &number);
    SAPWOOD_BEHIND(PMPI_Comm_free)(&host);
    return number;
}

/* Tells rank 0, which ends the tool's ranks, which these are. It is the program's: the
 * first rank of its host, where others follow it. */
static void tell_tool_ranks(int is_tool, int rank, int size)
{
    int *ranks = rank == 0 ? calloc((size_t)size, sizeof *ranks) : NULL;
    if (rank == 0 && ranks == NULL) {
        sapwood_say("there is no memory for the numbers of %d ranks", size);
        sapwood_world_refuse();
    }
    MPI_Datatype number = SAPWOOD_WORLD_HANDLE(MPI_INT, ompi_mpi_int);
    SAPWOOD_BEHIND(PMPI_Gather)(&is_tool, 1, number, ranks, 1, number, 0, sapwood_world_whole);
    for (int other = 0; rank == 0 && other < size; other++)
        if (ranks[other])
            ranks[tool_count++] = other;
    tool_ranks = ranks;
}

static void refuse_too_few(int rank, int size)
{
    if (rank == 0) {
        sapwood_say("the tool takes the last %d ranks, and the program has %d in all: none is left for it; start "
                    "it on more ranks",
                    tools, size);
        sapwood_world_refuse();
    }
    /* The abort of another rank might end rank 0 before: they wait for that of rank 0. */
    SAPWOOD_BEHIND(PMPI_Barrier)(sapwood_world_whole);
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
    bool has_hosts = sapwood_world_has_hosts();
    if (!has_hosts && tools >= size)
        refuse_too_few(rank, size);
    bool is_tool = has_hosts ? sapwood_world_is_last_of_host(tools) : rank >= size - tools;
    MPI_Comm half;
    SAPWOOD_BEHIND(PMPI_Comm_split)(sapwood_world_whole, is_tool, rank, &half);
    if (has_hosts)
        tell_tool_ranks(is_tool, rank, size);
    if (is_tool) {
        struct sapwood_world_tool tool;
        if (has_hosts)
            tool = sapwood_world_tool_of_host(half, tools);
        else
            tool = (struct sapwood_world_tool){half, rank - (size - tools), number_on_host(half), false};
        if (has_hosts)
            SAPWOOD_BEHIND(PMPI_Barrier)(sapwood_world_whole);
        sapwood_world_be_tool(&tool);
    }
    /* The tool's ranks may refuse the job: a program that has ended before would hide that. */
    if (has_hosts)
        SAPWOOD_BEHIND(PMPI_Barrier)(sapwood_world_whole);
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
    int count = tool_ranks != NULL ? tool_count : tools;
    for (int tool = 0; rank == 0 && tool < count; tool++) {
        int to = tool_ranks != NULL ? tool_ranks[tool] : program_size + tool;
        SAPWOOD_BEHIND(PMPI_Send)(NULL, 0, byte, to, SAPWOOD_WORLD_END_TAG, sapwood_world_whole);
    }
    free(tool_ranks);
    tool_ranks = NULL;
}
