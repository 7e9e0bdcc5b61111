/* Which ranks are the tool's where it has ranks of each host, and which leaves of the tree
 * these are; see world.h.
 *
 * The front-end names the hosts of leaves by their numbers, so that a rank of the tool looks
 * for its own host among those that the command names. Where one has no such name, as where
 * the command names addresses, or two have the same one, hosts count in the order of their
 * first ranks of the tool. Ranks that share memory are on one host; where MPI sees no memory
 * that ranks share, those are whose hosts have one name, one boot ID and one network namespace:
 * containers of several hosts, or of one, may all be called localhost.
 */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "say.h"

enum { HOST_NAME_BYTES = 256, MARK_BYTES = 64 };

/* What differs from kernel to kernel, and from container to container of one kernel. */
#define BOOT_FILE "/proc/sys/kernel/random/boot_id"
#define NETWORK_LINK "/proc/self/ns/net"

/* What is the same for ranks of one host alone; compared as bytes. What cannot be read is empty. */
struct identity {
    char name[HOST_NAME_BYTES];
    char boot[MARK_BYTES];
    char network[MARK_BYTES];
};

/* How many hosts there are, and which this one is; -1 if it is not distinguished by its name. */
struct listed {
    int count;
    int own;
};

/* How ranks of one host are found: agreed on by those that ask first. */
static enum { UNDECIDED, BY_MEMORY, BY_IDENTITY } way;

bool sapwood_world_has_hosts(void)
{
    const char *names = getenv("SAPWOOD_MPI_WORLD_HOSTS");
    return names != NULL && *names != '\0';
}

static void own_name(char name[HOST_NAME_BYTES])
{
    memset(name, 0, HOST_NAME_BYTES);
    gethostname(name, HOST_NAME_BYTES - 1);
}

static struct identity own_identity(void)
{
    struct identity own;
    memset(&own, 0, sizeof own);
    own_name(own.name);
    FILE *file = fopen(BOOT_FILE, "re");
    if (file != NULL) {
        size_t length = fread(own.boot, 1, sizeof own.boot - 1, file);
        own.boot[length] = '\0';
        fclose(file);
    }
    if (readlink(NETWORK_LINK, own.network, sizeof own.network - 1) < 0)
        own.network[0] = '\0';
    return own;
}

/* The length of a name without its domain: hosts are named with it and without. */
static size_t without_domain(const char *name, size_t length)
{
    const char *dot = memchr(name, '.', length);
    return dot != NULL ? (size_t)(dot - name) : length;
}

static struct listed listed_hosts(void)
{
    char own[HOST_NAME_BYTES];
    own_name(own);
    size_t own_length = without_domain(own, strlen(own));
    struct listed listed = {0, -1};
    int matches = 0;
    for (const char *name = getenv("SAPWOOD_MPI_WORLD_HOSTS"); name != NULL; listed.count++) {
        const char *end = strchr(name, SAPWOOD_WORLD_DIVIDER);
        size_t length = without_domain(name, end != NULL ? (size_t)(end - name) : strlen(name));
        if (length == own_length && strncasecmp(name, own, length) == 0) {
            listed.own = listed.count;
            matches++;
        }
        name = end != NULL ? end + 1 : NULL;
    }
    if (matches > 1)
        listed.own = -1;
    return listed;
}

/* The ranks of a communicator whose hosts are what this one is, in the same order. */
static MPI_Comm of_one_identity(MPI_Comm comm)
{
    int size, first = 0;
    MPI_Comm same;
    MPI_Datatype byte = SAPWOOD_WORLD_HANDLE(MPI_BYTE, ompi_mpi_byte);
    struct identity own = own_identity();
    SAPWOOD_BEHIND(PMPI_Comm_size)(comm, &size);
    struct identity *all = malloc((size_t)size * sizeof *all);
    if (all == NULL) {
        sapwood_say("there is no memory for the names of the hosts of %d ranks", size);
        sapwood_world_refuse();
    }
    SAPWOOD_BEHIND(PMPI_Allgather)(&own, sizeof own, byte, all, sizeof own, byte, comm);
    /* One of them is this rank's own. */
    while (memcmp(&all[first], &own, sizeof own) != 0)
        first++;
    free(all);
    SAPWOOD_BEHIND(PMPI_Comm_split)(comm, first, 0, &same);
    return same;
}

/* Whether each rank of a communicator is alone where MPI divides it by shared memory, and this need not be so: there
 * are fewer hosts, or none is listed. All of its ranks call it, each with its part. */
static bool sees_no_shared_memory(MPI_Comm comm, MPI_Comm part)
{
    int size, own, most;
    SAPWOOD_BEHIND(PMPI_Comm_size)(comm, &size);
    SAPWOOD_BEHIND(PMPI_Comm_size)(part, &own);
    SAPWOOD_BEHIND(PMPI_Allreduce)(&own, &most, 1, SAPWOOD_WORLD_HANDLE(MPI_INT, ompi_mpi_int),
                                   SAPWOOD_WORLD_HANDLE(MPI_MAX, ompi_mpi_op_max), comm);
    return most == 1 && size > listed_hosts().count;
}

MPI_Comm sapwood_world_on_host(MPI_Comm comm)
{
    MPI_Comm host;
    MPI_Info none = SAPWOOD_WORLD_HANDLE(MPI_INFO_NULL, ompi_mpi_info_null);
    if (way == BY_IDENTITY)
        return of_one_identity(comm);
    SAPWOOD_BEHIND(PMPI_Comm_split_type)(comm, MPI_COMM_TYPE_SHARED, 0, none, &host);
    if (way == UNDECIDED)
        way = sees_no_shared_memory(comm, host) ? BY_IDENTITY : BY_MEMORY;
    if (way == BY_MEMORY)
        return host;
    SAPWOOD_BEHIND(PMPI_Comm_free)(&host);
    return of_one_identity(comm);
}

bool sapwood_world_is_last_of_host(int tools)
{
    int rank, size;
    MPI_Comm host = sapwood_world_on_host(sapwood_world_whole);
    SAPWOOD_BEHIND(PMPI_Comm_size)(host, &size);
    SAPWOOD_BEHIND(PMPI_Comm_rank)(host, &rank);
    SAPWOOD_BEHIND(PMPI_Comm_free)(&host);
    if (size <= tools && rank == 0) {
        char name[HOST_NAME_BYTES];
        own_name(name);
        sapwood_say("the tool takes %d of the ranks of each host, and host %.64s has %d in all: none is left for the "
                    "program; start more ranks there, or none",
                    tools, name, size);
        sapwood_world_refuse();
    }
    return rank >= size - tools;
}

/* The number of this host in the order of the hosts' first ranks of the tool. */
static int number_of_host(MPI_Comm all, MPI_Comm host, int rank, int on_host)
{
    MPI_Comm equals;
    int number;
    SAPWOOD_BEHIND(PMPI_Comm_split)(all, on_host, rank, &equals);
    SAPWOOD_BEHIND(PMPI_Comm_rank)(equals, &number);
    SAPWOOD_BEHIND(PMPI_Comm_free)(&equals);
    /* Those that are not the first of their hosts may be in another order. */
    SAPWOOD_BEHIND(PMPI_Bcast)(&number, 1, SAPWOOD_WORLD_HANDLE(MPI_INT, ompi_mpi_int), 0, host);
    return number;
}

/* The number of this host as it is listed; -1 on hosts of which two take the same one, as where all have one name. */
static int number_of_its_own(MPI_Comm all, int listed, int tools)
{
    MPI_Comm same;
    int size;
    /* Colours are not negative. */
    SAPWOOD_BEHIND(PMPI_Comm_split)(all, listed + 1, 0, &same);
    SAPWOOD_BEHIND(PMPI_Comm_size)(same, &size);
    SAPWOOD_BEHIND(PMPI_Comm_free)(&same);
    return size == tools ? listed : -1;
}

struct sapwood_world_tool sapwood_world_tool_of_host(MPI_Comm all, int tools)
{
    int rank, size, on_host, least;
    MPI_Comm host = sapwood_world_on_host(all);
    SAPWOOD_BEHIND(PMPI_Comm_rank)(all, &rank);
    SAPWOOD_BEHIND(PMPI_Comm_size)(all, &size);
    SAPWOOD_BEHIND(PMPI_Comm_rank)(host, &on_host);
    int number = number_of_host(all, host, rank, on_host);
    SAPWOOD_BEHIND(PMPI_Comm_free)(&host);
    struct listed listed = listed_hosts();
    /* The front-end would wait for the leaves of hosts without ranks. */
    if (rank == 0 && size / tools != listed.count) {
        sapwood_say("the tree has leaves for %d hosts, and the ranks run on %d; name the hosts that have ranks by "
                    "--hosts",
                    listed.count, size / tools);
        sapwood_world_refuse();
    }
    int own = number_of_its_own(all, listed.own, tools);
    SAPWOOD_BEHIND(PMPI_Allreduce)(&own, &least, 1, SAPWOOD_WORLD_HANDLE(MPI_INT, ompi_mpi_int),
                                   SAPWOOD_WORLD_HANDLE(MPI_MIN, ompi_mpi_op_min), all);
    if (least >= 0)
        number = own;
    return (struct sapwood_world_tool){all, number * tools + on_host, on_host, true};
}
