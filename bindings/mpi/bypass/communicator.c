/* Finding and settling communicators; see communicator.h. */
#define _GNU_SOURCE
#include "communicator.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "presence.h"

enum { CACHE_PLACES = 256 };

/* Entries are never returned to the allocator, so that a stale one can be looked at. */
static _Atomic(struct bypass_communicator *) cache[CACHE_PLACES];
static struct bypass_communicator *spares;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int keyval = MPI_KEYVAL_INVALID;
static struct bypass_lateness *lateness;
static struct bypass_edges edges;

struct bypass_lateness *bypass_lateness(void)
{
    return lateness;
}

const struct bypass_edges *bypass_edges(void)
{
    return &edges;
}

static _Atomic(struct bypass_communicator *) *cache_place(MPI_Comm comm)
{
    uint64_t handle = (uint64_t)(uintptr_t)comm;
    return &cache[(handle * UINT64_C(0x9e3779b97f4a7c15) >> 40) % CACHE_PLACES];
}

/* MPI deletes the communicator. Others may still work with its segment: they have their own
 * mappings of it. */
static int forget(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)key;
    (void)extra;
    struct bypass_communicator *c = value;
    pthread_mutex_lock(&lock);
    atomic_store(&c->comm, bypass_calls.comm_null);
    _Atomic(struct bypass_communicator *) *place = cache_place(comm);
    if (atomic_load(place) == c)
        atomic_store(place, NULL);
    if (c->open && (void *)c->segment.lateness != (void *)lateness)
        bypass_segment_unmap(&c->segment);
    c->open = false;
    free(c->world_ranks);
    c->world_ranks = NULL;
    c->spare = spares;
    spares = c;
    pthread_mutex_unlock(&lock);
    return MPI_SUCCESS;
}

static int do_not_copy(MPI_Comm comm, int key, void *extra, void *value, void *copy, int *flag)
{
    (void)comm, (void)key, (void)extra, (void)value, (void)copy;
    *flag = 0;
    return MPI_SUCCESS;
}

/* Learns the members' ranks in MPI_COMM_WORLD; false if one is not in it. */
static bool find_world_ranks(struct bypass_communicator *c, MPI_Comm comm)
{
    MPI_Group group, world;
    int *ranks = malloc(c->size * sizeof *ranks);
    c->world_ranks = malloc(c->size * sizeof *c->world_ranks);
    if (ranks == NULL || c->world_ranks == NULL)
        abort();
    for (uint32_t i = 0; i < c->size; i++)
        ranks[i] = (int)i;
    bypass_calls.Comm_group(comm, &group);
    bypass_calls.Comm_group(bypass_calls.comm_world, &world);
    bypass_calls.Group_translate_ranks(group, (int)c->size, ranks, world, c->world_ranks);
    bypass_calls.Group_free(&group);
    bypass_calls.Group_free(&world);
    free(ranks);
    bool all = true;
    for (uint32_t i = 0; i < c->size; i++)
        all = all && c->world_ranks[i] != MPI_UNDEFINED;
    return all;
}

/* Whether there can be a segment, decided alike at all ranks without a message. */
static bool is_eligible(struct bypass_communicator *c, MPI_Comm comm)
{
    int inter = 0, rank = 0, size = 0;
    bypass_calls.Comm_test_inter(comm, &inter);
    bypass_calls.Comm_size(comm, &size);
    bypass_calls.Comm_rank(comm, &rank);
    c->rank = (uint32_t)rank;
    c->size = (uint32_t)size;
    bool is_small = c->size < bypass_settings.ranks_min;
    c->cause = inter ? BYPASS_INTER : is_small ? BYPASS_FEW : BYPASS_NOT_ALL_HERE;
    if (inter || is_small || !find_world_ranks(c, comm))
        return false;
    bool all = true;
    for (int i = 0; i < size && all; i++) {
        /* Only one question at a time may use the socket. */
        pthread_mutex_lock(&lock);
        all = bypass_presence_of(c->world_ranks[i]);
        pthread_mutex_unlock(&lock);
    }
    c->cause = BYPASS_NO_MEMORY;
    return all || (c->cause = BYPASS_NOT_ALL_HERE, false);
}

/* What rank 0 tells the others about the memory that it has made. */
struct offer {
    uint64_t cookie;
    int32_t pid, fd;
};

/* Rank 0 makes the memory, the others map it, and all agree on whether all have. */
static void exchange(struct bypass_communicator *c, MPI_Comm comm)
{
    struct offer offer = {.pid = getpid(), .fd = -1};
    bool for_world = comm == bypass_calls.comm_world;
    if (c->rank == 0) {
        if (getrandom(&offer.cookie, sizeof offer.cookie, 0) != sizeof offer.cookie)
            offer.cookie = bypass_now_ns();
        offer.fd = bypass_segment_make(&c->segment, c->size, offer.cookie, for_world);
    }
    bypass_calls.Bcast(&offer, sizeof offer, bypass_calls.type_byte, 0, comm);
    if (offer.fd < 0)
        return;
    int mapped = c->rank == 0 || bypass_segment_map(&c->segment, offer.pid, offer.fd, offer.cookie), all = 0;
    if (mapped)
        c->segment.members[c->rank].pid = (uint32_t)getpid();
    bypass_calls.Allreduce(&mapped, &all, 1, bypass_calls.type_int, bypass_calls.op_min, comm);
    if (c->rank == 0)
        close(offer.fd);
    c->open = all;
    c->patience.crowded = (long)c->size > sysconf(_SC_NPROCESSORS_ONLN);
    if (mapped && !all)
        bypass_segment_unmap(&c->segment);
}

static void settle(struct bypass_communicator *c, MPI_Comm comm)
{
    if (is_eligible(c, comm))
        exchange(c, comm);
    if (c->open)
        bypass_count(&bypass_account.communicators, 1);
    c->settled = true;
}

/* The entry of a communicator that is not in the cache. */
static struct bypass_communicator *find_slowly(MPI_Comm comm)
{
    struct bypass_communicator *c = NULL;
    int found = 0;
    if (comm == bypass_calls.comm_null || bypass_calls.Comm_get_attr(comm, keyval, &c, &found) != MPI_SUCCESS)
        return NULL;
    if (!found) {
        pthread_mutex_lock(&lock);
        c = spares;
        if (c != NULL)
            spares = c->spare;
        pthread_mutex_unlock(&lock);
        if (c == NULL && (c = malloc(sizeof *c)) == NULL)
            abort();
        *c = (struct bypass_communicator){.comm = comm};
        if (bypass_calls.Comm_set_attr(comm, keyval, c) != MPI_SUCCESS)
            return NULL;
    }
    atomic_store(cache_place(comm), c);
    return c;
}

struct bypass_communicator *bypass_communicator_of(MPI_Comm comm)
{
    struct bypass_communicator *c = atomic_load_explicit(cache_place(comm), memory_order_acquire);
    if (c == NULL || atomic_load_explicit(&c->comm, memory_order_relaxed) != comm)
        c = find_slowly(comm);
    if (c == NULL || c->settled)
        return c;
    c->cause = BYPASS_FIRST_CALLS;
    if (c->calls++ >= bypass_settings.after)
        settle(c, comm);
    return c;
}

const struct bypass_segment *bypass_communicators_begin(void)
{
    if (bypass_calls.Comm_create_keyval(do_not_copy, forget, &keyval, NULL) != MPI_SUCCESS)
        return NULL;
    struct bypass_communicator *world = find_slowly(bypass_calls.comm_world);
    if (world == NULL)
        return NULL;
    settle(world, bypass_calls.comm_world);
    lateness = world->open ? world->segment.lateness : calloc(world->size, sizeof *lateness);
    if (lateness == NULL)
        abort();
    if (!world->open)
        return NULL;
    edges = world->segment.edges;
    return &world->segment;
}
