/* Communicators, windows and persistent collectives in the event file; see events.h and spaces.h. */
#define _GNU_SOURCE
#include "names.h"
#include "places.h"

struct sapwood_space sapwood_no_space = {.handle = UINT64_MAX};
/* Where there is no file the spaces number no collective. */
struct sapwood_space *_Atomic sapwood_space_at[SAPWOOD_CACHE_WORDS];

/* Handles of communicators that have no space because all are taken. */
static _Atomic uint64_t without_at[SAPWOOD_CACHE_WORDS];

/* What its members count on a communicator, each kind for itself: calls that make others, and windows and requests of
 * persistent collectives that were made on it. */
enum kind { OF_CALLS, OF_WINDOWS, OF_REQUESTS, KINDS };

/* What is known of a space beside what the file says. */
struct descent {
    /* The same in all processes of the communicator, also in those of its remote group. */
    uint64_t line;
    /* The ranks of its own group, and of its remote one, each as one number. */
    uint64_t own;
    uint64_t remote;
    uint32_t counts[KINDS];
    /* A call of this kind has failed here, so that their number may not be that of other processes. */
    bool is_count_lost[KINDS];
    /* It was made behind such a call, or other processes may have counted more of its kind, or it is a window or a
     * request of such a communicator: its line may not be that of other processes. */
    bool is_line_lost;
};
static struct descent descents[SAPWOOD_SPACES];
/* A communicator has found no place, so that from then on other processes may have counted what this one has not. */
static bool was_full;

/* Tells the origin of a call that is not told from all others by it alone. */
#define ORIGIN_SHARED UINT64_C(1)
/* In the place of what tells a call from others, where that is not known. */
#define ORIGIN_LOST ORIGIN_SHARED

/* How many communicators have had a key that several may have, by these keys; 0 no key. */
enum { KEYS = 1 << 14, KEY_TRIES_MAX = 64 };
static struct {
    uint64_t key;
    uint64_t count;
} keys[KEYS];

#define READ(word) atomic_load_explicit(&(word), memory_order_relaxed)

/* An attribute of communicators that have a space, by which MPI says when one is freed, also by its PMPI_ name. */
static int freed_keyval = MPI_KEYVAL_INVALID;
/* MPI gives up the attribute of a communicator that is in use, for another one. */
static _Thread_local bool is_marking __attribute__((tls_model("initial-exec")));

static int copy_nothing(MPI_Comm comm, int keyval, void *state, void *value, void *copied, int *flag)
{
    (void)comm, (void)keyval, (void)state, (void)value, (void)copied;
    *flag = 0;
    return MPI_SUCCESS;
}

/* The communicator of an attribute is freed. MPI may hold a lock of its own for attributes: nothing is asked of it. */
static int note_freed(MPI_Comm comm, int keyval, void *handle, void *state)
{
    (void)comm, (void)keyval, (void)state;
    if (is_marking || atomic_load_explicit(&sapwood_phase, memory_order_relaxed) < SAPWOOD_PAUSED)
        return MPI_SUCCESS;
    sapwood_table_lock();
    bool is_known = sapwood_place_of((uint64_t)(uintptr_t)handle) != NULL;
    sapwood_table_unlock();
    if (is_known)
        sapwood_forget_comm((MPI_Comm)(uintptr_t)handle);
    return MPI_SUCCESS;
}

/* Callers do not hold the table's lock. The two that are never freed have no attribute: MPI_Finalize deletes those of
 * MPI_COMM_SELF first, in an order that programs rely on. */
static void mark(MPI_Comm comm)
{
    if (freed_keyval == MPI_KEYVAL_INVALID || comm == sapwood_library.comm_world || comm == sapwood_library.comm_self)
        return;
    is_marking = true;
    sapwood_library.comm_set_attr(comm, freed_keyval, (void *)(uintptr_t)SAPWOOD_HANDLE(comm));
    is_marking = false;
}

void sapwood_spaces_begin(void)
{
    sapwood_library.comm_create_keyval(copy_nothing, note_freed, &freed_keyval, NULL);
    for (int place = 0; place < SAPWOOD_CACHE_WORDS; place++)
        atomic_store_explicit(&sapwood_space_at[place], &sapwood_no_space, memory_order_relaxed);
}

/* The ranks in the world of a group, in order, as one number; the group is freed. */
static uint64_t group_number(MPI_Group group, uint32_t size)
{
    uint64_t number = UINT64_C(14695981039346656037);
    MPI_Group world;
    if (sapwood_library.comm_group(sapwood_library.comm_world, &world) == MPI_SUCCESS) {
        enum { AT_ONCE = 256 };
        int ranks[AT_ONCE], there[AT_ONCE];
        for (uint32_t first = 0; first < size; first += AT_ONCE) {
            int count = size - first < AT_ONCE ? (int)(size - first) : AT_ONCE;
            for (int i = 0; i < count; i++)
                ranks[i] = (int)first + i;
            if (sapwood_library.group_translate_ranks(group, count, ranks, world, there) != MPI_SUCCESS)
                break;
            for (int i = 0; i < count; i++)
                number = (number ^ (uint32_t)there[i]) * UINT64_C(1099511628211);
        }
        sapwood_library.group_free(&world);
    }
    sapwood_library.group_free(&group);
    return number;
}

static uint64_t mixed(uint64_t number)
{
    number = (number ^ number >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    number = (number ^ number >> 27) * UINT64_C(0x94D049BB133111EB);
    return number ^ number >> 31;
}

/* A space that readers do not see yet; NULL when all are taken. Callers hold the table's lock. */
static struct sapwood_space *space_free(void)
{
    struct sapwood_space *space = sapwood_place_free();
    if (space != NULL)
        descents[space - sapwood_events->spaces] = (struct descent){.line = 0};
    return space;
}

/* The same for a communicator. Windows and requests are counted by theirs also where they find no place. */
static struct sapwood_space *space_of_comm(void)
{
    struct sapwood_space *space = space_free();
    was_full = was_full || space == NULL;
    return space;
}

static struct descent *descent_of(const struct sapwood_space *space)
{
    return &descents[space - sapwood_events->spaces];
}

/* How many communicators have had a key before this one; false where there is no room to know. */
static bool count_key(uint64_t key, uint64_t *before)
{
    for (uint64_t tries = 0, place = mixed(key); tries < KEY_TRIES_MAX; tries++, place++) {
        if (keys[place % KEYS].key == 0)
            keys[place % KEYS].key = key;
        if (keys[place % KEYS].key != key)
            continue;
        *before = keys[place % KEYS].count++;
        return true;
    }
    return false;
}

/* Gives a space its identity, of a key that only spaces have that are made in one order in all processes, and
 * of how many have had it before. */
static void identify(struct sapwood_space *space, uint64_t key, uint64_t before)
{
    struct descent *descent = descent_of(space);
    descent->line = mixed(key + before);
    bool is_between = READ(space->flags) & SAPWOOD_SPACE_BETWEEN;
    space->identity = is_between ? mixed(descent->line + descent->own) : descent->line;
}

/* Gives a space that is made on a communicator the members of this, and these flags beside that of two groups. */
static void take_members(struct sapwood_space *space, const struct sapwood_space *like, uint32_t flags)
{
    const struct descent *origin = descent_of(like);
    uint32_t between = READ(like->flags) & SAPWOOD_SPACE_BETWEEN;
    space->size = like->size;
    space->rank = like->rank;
    atomic_store_explicit(&space->flags, between | flags, memory_order_relaxed);
    descent_of(space)->own = origin->own;
    descent_of(space)->remote = origin->remote;
}

/* Only this process may know the line of a space: its numbers mean nothing to others. */
static void lose_line(struct sapwood_space *space)
{
    descent_of(space)->is_line_lost = true;
    atomic_fetch_or_explicit(&space->flags, SAPWOOD_SPACE_NUMBER_LOST, memory_order_relaxed);
}

/* A key that no other space has, here or in another process. */
static uint64_t key_alone(void)
{
    static uint64_t given;
    return mixed(mixed((UINT64_C(1) << 34) + sapwood_table->header.world_rank) + ++given);
}

/* The same of a communicator. Both sides of one between two groups have the same key, so that one that is made of
 * it later has one identity. Of one whose key is counted nothing is known once a communicator found no place: the
 * line of the other one that has that number in another process must not be taken for its own. */
static void identify_made(struct sapwood_space *space, uint64_t origin)
{
    const struct descent *descent = descent_of(space);
    bool is_shared = origin == 0 || (origin & ORIGIN_SHARED) != 0;
    uint64_t key = mixed(origin + descent->own + descent->remote), before = 0;
    bool is_counted = !is_shared || (!was_full && count_key(key, &before));
    if (!is_counted || origin == ORIGIN_LOST)
        lose_line(space);
    identify(space, is_counted ? key : key_alone(), before);
}

/* Callers hold the table's lock. */
static struct sapwood_space *space_new(MPI_Comm comm, uint64_t origin)
{
    struct sapwood_space *space = space_of_comm();
    if (space == NULL)
        return &sapwood_no_space;
    struct descent *descent = descent_of(space);
    MPI_Group group;
    int between = 0, remote = 0;
    sapwood_library.comm_test_inter(comm, &between);
    space->size = (uint32_t)sapwood_local_size(comm);
    space->rank = (uint32_t)sapwood_rank(comm);
    if (sapwood_library.comm_group(comm, &group) == MPI_SUCCESS)
        descent->own = group_number(group, space->size);
    if (between) {
        atomic_store_explicit(&space->flags, SAPWOOD_SPACE_BETWEEN, memory_order_relaxed);
        if (sapwood_library.comm_remote_size(comm, &remote) == MPI_SUCCESS &&
            sapwood_library.comm_remote_group(comm, &group) == MPI_SUCCESS)
            descent->remote = group_number(group, (uint32_t)remote);
    }
    identify_made(space, origin);
    sapwood_place_take(space, SAPWOOD_HANDLE(comm));
    return space;
}

/* Keeps where a communicator's space is. Callers hold the table's lock. */
static void keep(uint64_t handle, struct sapwood_space *space)
{
    unsigned place = sapwood_cache_place(handle);
    if (space == &sapwood_no_space)
        atomic_store_explicit(&without_at[place], handle, memory_order_relaxed);
    else
        atomic_store_explicit(&sapwood_space_at[place], space, memory_order_relaxed);
}

struct sapwood_space *sapwood_space_found(MPI_Comm comm)
{
    uint64_t handle = SAPWOOD_HANDLE(comm);
    if (sapwood_events == NULL || READ(without_at[sapwood_cache_place(handle)]) == handle)
        return &sapwood_no_space;
    sapwood_table_lock();
    struct sapwood_space *space = sapwood_place_of(handle);
    bool is_new = space == NULL;
    if (is_new)
        space = space_new(comm, 0);
    keep(handle, space);
    sapwood_table_unlock();
    if (is_new && space != &sapwood_no_space)
        mark(comm);
    return space;
}

void sapwood_space_seen(MPI_Comm comm)
{
    if (comm != sapwood_library.comm_null)
        sapwood_space_found(comm);
}

/* Its numbers mean nothing to a communicator that gets the same handle. Callers hold the table's lock. */
static void forget(uint64_t handle)
{
    for (struct sapwood_space *space; (space = sapwood_place_of(handle)) != NULL;)
        sapwood_place_leave(space);
    if (READ(without_at[sapwood_cache_place(handle)]) == handle)
        atomic_store_explicit(&without_at[sapwood_cache_place(handle)], 0, memory_order_relaxed);
}

void sapwood_space_made(MPI_Comm comm, uint64_t origin)
{
    if (sapwood_events == NULL || comm == sapwood_library.comm_null)
        return;
    uint64_t handle = SAPWOOD_HANDLE(comm);
    sapwood_table_lock();
    /* Of one that was freed unseen. */
    forget(handle);
    struct sapwood_space *space = space_new(comm, origin);
    keep(handle, space);
    sapwood_table_unlock();
    if (space != &sapwood_no_space)
        mark(comm);
}

void sapwood_space_promised(MPI_Comm parent, MPI_Comm comm, uint64_t origin)
{
    if (sapwood_events == NULL || comm == sapwood_library.comm_null)
        return;
    uint64_t handle = SAPWOOD_HANDLE(comm);
    sapwood_table_lock();
    forget(handle);
    const struct sapwood_space *like = sapwood_place_of(SAPWOOD_HANDLE(parent));
    struct sapwood_space *space = like == NULL ? NULL : space_of_comm();
    if (space != NULL) {
        take_members(space, like, 0);
        identify_made(space, origin);
        sapwood_place_take(space, handle);
        keep(handle, space);
    }
    sapwood_table_unlock();
}

/* The space of a handle, and with it the table's lock; neither where there is none. */
static struct sapwood_space *known_and_locked(uint64_t handle)
{
    if (sapwood_events == NULL)
        return NULL;
    sapwood_table_lock();
    struct sapwood_space *space = sapwood_place_of(handle);
    if (space == NULL)
        sapwood_table_unlock();
    return space;
}

struct sapwood_space *sapwood_space_known(MPI_Comm comm)
{
    uint64_t handle = SAPWOOD_HANDLE(comm);
    bool is_without = READ(without_at[sapwood_cache_place(handle)]) == handle;
    struct sapwood_space *space = is_without ? NULL : known_and_locked(handle);
    if (space == NULL)
        return &sapwood_no_space;
    keep(handle, space);
    sapwood_table_unlock();
    return space;
}

uint64_t sapwood_origin_called(MPI_Comm parent)
{
    const struct sapwood_space *space = known_and_locked(SAPWOOD_HANDLE(parent));
    if (space == NULL)
        return 0;
    struct descent *descent = descent_of(space);
    bool is_lost = descent->is_count_lost[OF_CALLS] || descent->is_line_lost;
    uint32_t *calls = &descent->counts[OF_CALLS];
    uint64_t origin = is_lost ? ORIGIN_LOST : mixed(descent->line + mixed(++*calls)) & ~ORIGIN_SHARED;
    sapwood_table_unlock();
    return origin;
}

uint64_t sapwood_origin_tagged(MPI_Comm parent, int tag)
{
    const struct sapwood_space *space = known_and_locked(SAPWOOD_HANDLE(parent));
    uint64_t line = 0;
    bool is_lost = false;
    if (space != NULL) {
        line = descent_of(space)->line;
        is_lost = descent_of(space)->is_line_lost;
        sapwood_table_unlock();
    }
    return is_lost ? ORIGIN_LOST : mixed(line + mixed((UINT64_C(1) << 33) + (uint32_t)tag)) | ORIGIN_SHARED;
}

/* Whether the other processes count a call of this kind that has failed here is not known. */
static void lose_count(MPI_Comm comm, enum kind kind)
{
    const struct sapwood_space *space = known_and_locked(SAPWOOD_HANDLE(comm));
    if (space == NULL)
        return;
    descent_of(space)->is_count_lost[kind] = true;
    sapwood_table_unlock();
}

void sapwood_origin_failed(MPI_Comm parent)
{
    lose_count(parent, OF_CALLS);
}

void sapwood_space_number_lost(MPI_Comm comm)
{
    struct sapwood_space *space = known_and_locked(SAPWOOD_HANDLE(comm));
    if (space == NULL)
        return;
    atomic_fetch_or_explicit(&space->flags, SAPWOOD_SPACE_NUMBER_LOST, memory_order_relaxed);
    sapwood_table_unlock();
}

static void forget_handle(uint64_t handle)
{
    if (sapwood_events == NULL)
        return;
    sapwood_table_lock();
    forget(handle);
    sapwood_table_unlock();
}

void sapwood_space_forget(MPI_Comm comm)
{
    forget_handle(SAPWOOD_HANDLE(comm));
}

void sapwood_window_forget(uint64_t window)
{
    forget_handle(window);
    sapwood_forget_name(window);
}

uint64_t sapwood_window_closing(uint64_t window)
{
    if (window == 0)
        return 0;
    uint64_t closing = sapwood_number_of_none();
    struct sapwood_space *space = known_and_locked(window);
    if (space != NULL) {
        sapwood_place_moved(space, closing);
        sapwood_table_unlock();
    }
    sapwood_name_moved(window, closing);
    return closing;
}

void sapwood_window_closed(uint64_t closing)
{
    sapwood_window_forget(closing);
}

void sapwood_window_made(MPI_Comm comm, uint64_t window)
{
    /* What is known of the handle is of a window that was freed unseen. */
    sapwood_forget_name(window);
    if (sapwood_events == NULL)
        return;
    const struct sapwood_space *origin = sapwood_space_of(comm);
    bool is_known = origin != &sapwood_no_space;
    sapwood_table_lock();
    forget(window);
    /* Also of one that finds no place here: in other processes it may have one. */
    uint32_t before = is_known ? descent_of(origin)->counts[OF_WINDOWS]++ : 0;
    struct sapwood_space *space = is_known ? space_free() : NULL;
    if (space != NULL) {
        take_members(space, origin, SAPWOOD_SPACE_WINDOW);
        if (descent_of(origin)->is_line_lost)
            lose_line(space);
        identify(space, mixed(origin->identity + mixed(UINT64_C(1) << 32)), before);
        sapwood_place_take(space, window);
    }
    sapwood_table_unlock();
}

static uint32_t held_code(int rank)
{
    return rank < 0 ? SAPWOOD_HELD_ALL : (uint32_t)rank + 1;
}

void sapwood_window_locked(uint64_t window, int rank)
{
    struct sapwood_space *space = known_and_locked(window);
    if (space == NULL)
        return;
    atomic_store_explicit(&space->held, held_code(rank), memory_order_relaxed);
    sapwood_table_unlock();
}

void sapwood_window_unlocked(uint64_t window, int rank)
{
    struct sapwood_space *space = known_and_locked(window);
    if (space == NULL)
        return;
    if (READ(space->held) == held_code(rank))
        atomic_store_explicit(&space->held, 0, memory_order_relaxed);
    sapwood_table_unlock();
}

void sapwood_persistent_space_counted(const struct sapwood_space *comm)
{
    sapwood_table_lock();
    descent_of(comm)->counts[OF_REQUESTS]++;
    sapwood_table_unlock();
}

/* The name of a communicator. That of the world is known to readers by its handle. Callers hold the table's lock. */
static uint32_t name_of(const struct sapwood_space *comm)
{
    static const char world[] = "MPI_COMM_WORLD";
    uint32_t name = READ(comm->name);
    bool is_world = READ(comm->handle) == SAPWOOD_HANDLE(sapwood_library.comm_world);
    return name == 0 && is_world ? sapwood_name_kept(world, sizeof world - 1) : name;
}

struct sapwood_space *sapwood_persistent_space_made(const struct sapwood_space *comm)
{
    sapwood_table_lock();
    struct descent *origin = descent_of(comm);
    uint32_t before = origin->counts[OF_REQUESTS]++;
    struct sapwood_space *space = space_free();
    if (space != NULL) {
        take_members(space, comm, SAPWOOD_SPACE_REQUEST);
        bool is_lost = origin->is_line_lost || origin->is_count_lost[OF_REQUESTS];
        if (is_lost)
            lose_line(space);
        /* Other processes must not take one of which the number is not known for another one. */
        identify(space, is_lost ? key_alone() : mixed(comm->identity + mixed(UINT64_C(1) << 35)), before);
        sapwood_place_take(space, sapwood_number_of_none());
        sapwood_name_held(space, name_of(comm));
    }
    sapwood_table_unlock();
    return space;
}

void sapwood_persistent_space_failed(MPI_Comm comm)
{
    lose_count(comm, OF_REQUESTS);
}

void sapwood_persistent_space_left(struct sapwood_space *space)
{
    sapwood_table_lock();
    sapwood_place_leave(space);
    sapwood_table_unlock();
}
