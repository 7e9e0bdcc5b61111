/* See extras.h: which calls are tallied under which subjects. */
#include "extras.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sites.h"
#include "tallies.h"

uint32_t sapwood_extras;

enum { RANKS_TEXT_BYTES = 96, PEERS_KNOWN = 64 };

uint32_t sapwood_extras_asked(void)
{
    static const struct {
        const char *word;
        uint32_t bit;
    } known[] = {{"call-sites", SAPWOOD_EXTRA_CALL_SITES},
                 {"peers", SAPWOOD_EXTRA_PEERS},
                 {"communicators", SAPWOOD_EXTRA_COMMUNICATORS}};
    const char *asked = getenv("SAPWOOD_MPI_EXTRAS");
    uint32_t bits = 0;
    while (asked != NULL && *asked != '\0') {
        size_t length = strcspn(asked, ",");
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            if (strlen(known[i].word) == length && memcmp(known[i].word, asked, length) == 0)
                bits |= known[i].bit;
        asked += length + (asked[length] == ',');
    }
    return bits;
}

/* Incremented when a handle is freed, so that no thread uses what it knew of one. */
static _Atomic uint64_t generation = 1;

/* The group on the other side of a communicator, and that of the world; the caller frees both. */
static bool groups_of(MPI_Comm comm, MPI_Group *group, MPI_Group *world)
{
    int between = 0;
    sapwood_library.comm_test_inter(comm, &between);
    int found = between ? sapwood_library.comm_remote_group(comm, group) : sapwood_library.comm_group(comm, group);
    if (found != MPI_SUCCESS)
        return false;
    if (sapwood_library.comm_group(sapwood_library.comm_world, world) == MPI_SUCCESS)
        return true;
    sapwood_library.group_free(group);
    return false;
}

/* The rank in MPI_COMM_WORLD; negative for a process of another world. */
static int world_rank_asked(MPI_Comm comm, int rank)
{
    MPI_Group group, world;
    int found = -1;
    if (!groups_of(comm, &group, &world))
        return -1;
    if (sapwood_library.group_translate_ranks(group, 1, &rank, world, &found) != MPI_SUCCESS)
        found = -1;
    sapwood_library.group_free(&group);
    sapwood_library.group_free(&world);
    return found;
}

/* The same, out of what this thread has asked already. */
static int world_rank_of(MPI_Comm comm, int rank)
{
    static _Thread_local struct {
        uint64_t generation;
        uint64_t handle;
        int rank;
        int world;
    } known[PEERS_KNOWN] __attribute__((tls_model("initial-exec")));
    if (comm == sapwood_library.comm_world)
        return rank;
    uint64_t handle = SAPWOOD_HANDLE(comm), now = atomic_load_explicit(&generation, memory_order_acquire);
    unsigned at = (unsigned)((handle + (uint64_t)rank) * UINT64_C(0x9E3779B97F4A7C15) >> 58);
    if (known[at].generation == now && known[at].handle == handle && known[at].rank == rank)
        return known[at].world;
    known[at].world = world_rank_asked(comm, rank);
    known[at].handle = handle;
    known[at].rank = rank;
    known[at].generation = now;
    return known[at].world;
}

/* The world's ranks of a communicator as text, such as `0-3,7`; what is too long is cut, and
 * then distinguished by a number out of all of them. */
static void ranks_told(MPI_Comm comm, char *text, size_t room)
{
    MPI_Group group, world;
    int size = 0, between = 0;
    *text = '\0';
    sapwood_library.comm_test_inter(comm, &between);
    if (sapwood_library.comm_size(comm, &size) != MPI_SUCCESS || size < 1 || !groups_of(comm, &group, &world))
        return;
    if (between)
        sapwood_library.comm_remote_size(comm, &size);
    int *ranks = calloc(2 * (size_t)size, sizeof *ranks), *there = ranks == NULL ? NULL : ranks + size;
    for (int i = 0; ranks != NULL && i < size; i++)
        ranks[i] = i;
    if (ranks != NULL && sapwood_library.group_translate_ranks(group, size, ranks, world, there) == MPI_SUCCESS) {
        uint64_t hash = UINT64_C(14695981039346656037);
        size_t used = (size_t)snprintf(text, room, between ? "to " : "");
        bool cut = false;
        for (int first = 0, next; first < size; first = next) {
            for (next = first + 1; next < size && there[next] == there[next - 1] + 1; next++)
                ;
            for (int i = first; i < next; i++)
                hash = (hash ^ (uint32_t)there[i]) * UINT64_C(1099511628211);
            char part[32];
            int length = next - first > 1 ? snprintf(part, sizeof part, "%s%d-%d", first ? "," : "", there[first], there[next - 1])
                         : there[first] < 0 ? snprintf(part, sizeof part, "%s?", first ? "," : "")
                                            : snprintf(part, sizeof part, "%s%d", first ? "," : "", there[first]);
            cut = cut || used + (size_t)length + 24 > room;
            if (!cut)
                used += (size_t)snprintf(text + used, room - used, "%s", part);
        }
        if (cut)
            snprintf(text + used, room - used, ",.. #%08x", (unsigned)(hash ^ hash >> 32));
    }
    free(ranks);
    sapwood_library.group_free(&group);
    sapwood_library.group_free(&world);
}

/* The name that the program or MPI gave it, and its ranks. */
static uint32_t communicator_named(const struct sapwood_call *call)
{
    char name[MPI_MAX_OBJECT_NAME + 1] = "", ranks[RANKS_TEXT_BYTES], text[sizeof name + sizeof ranks + 4];
    int length = 0;
    sapwood_library.comm_get_name(call->comm, name, &length);
    ranks_told(call->comm, ranks, sizeof ranks);
    length = snprintf(text, sizeof text, "%.120s%s[%s]", name, *name == '\0' ? "" : " ", ranks);
    return length < 0 ? 0 : sapwood_tally_name(text, (size_t)length);
}

void sapwood_extra(const struct sapwood_call *call)
{
    uint64_t function = (uint64_t)call->function << 8 | call->class;
    uint64_t ns = sapwood_ns(call->ticks);
    if (sapwood_extras & SAPWOOD_EXTRA_CALL_SITES)
        sapwood_tally(SAPWOOD_TALLY_CALL_SITE, function, (uint64_t)(uintptr_t)call->site, call, ns, sapwood_site_found);
    /* A failed call has no class, and its communicator may be none. */
    if (!call->has_comm || call->class == SAPWOOD_CLASS_NONE)
        return;
    if (sapwood_extras & SAPWOOD_EXTRA_COMMUNICATORS)
        sapwood_tally(SAPWOOD_TALLY_COMMUNICATOR, function, SAPWOOD_HANDLE(call->comm), call, ns, NULL);
    if (sapwood_extras & SAPWOOD_EXTRA_PEERS && call->dest >= 0) {
        int peer = world_rank_of(call->comm, call->dest);
        struct sapwood_call sent = *call;
        sent.bytes -= call->received;
        if (peer >= 0)
            sapwood_tally(SAPWOOD_TALLY_PEER, 0, (uint64_t)peer, &sent, ns, NULL);
    }
}

void sapwood_extra_later(uint32_t function, unsigned class, const void *site, uint64_t comm, uint64_t bytes)
{
    uint64_t key = (uint64_t)function << 8 | class;
    if (sapwood_extras & SAPWOOD_EXTRA_CALL_SITES)
        sapwood_tally_later(SAPWOOD_TALLY_CALL_SITE, key, (uint64_t)(uintptr_t)site, bytes);
    if (sapwood_extras & SAPWOOD_EXTRA_COMMUNICATORS && comm != 0)
        sapwood_tally_later(SAPWOOD_TALLY_COMMUNICATOR, key, comm, bytes);
}

uint32_t sapwood_tally_subject_name(unsigned kind, const struct sapwood_call *call)
{
    return kind == SAPWOOD_TALLY_COMMUNICATOR ? communicator_named(call) : 0;
}

void sapwood_extras_forget(MPI_Comm comm)
{
    if (sapwood_extras == 0)
        return;
    atomic_fetch_add_explicit(&generation, 1, memory_order_release);
    sapwood_tallies_forget(SAPWOOD_TALLY_COMMUNICATOR, SAPWOOD_HANDLE(comm));
}
