/* See places.h. */
#include "places.h"

#include "names.h"

#define READ(word) atomic_load_explicit(&(word), memory_order_relaxed)
#define WRITE(word, value) atomic_store_explicit(&(word), (value), memory_order_relaxed)

enum {
    BUCKET_BITS = 13,
    BUCKETS = 1 << BUCKET_BITS,
    /* Freed places that are looked at for a new communicator. */
    FREED_TRIES_MAX = 64,
};

/* What is known of a place beside what the file says. */
struct place {
    uint32_t next; /* number of another one, plus 1: of the same bucket, or that was freed after it */
    _Atomic uint32_t uses;
    _Atomic uint32_t requests;
    /* Its communicator is freed, and no request names it. */
    bool is_free;
    /* Where the rings were when it was taken, and once it is free, where they were then. */
    uint32_t heads[SAPWOOD_RINGS];
    /* Which of them have had records between: there alone may be records that name it. */
    uint32_t rings;
    /* Once it is free, when the rings were there. */
    uint64_t freed;
};

static struct place places[SAPWOOD_SPACES];
static uint32_t buckets[BUCKETS];
/* The free ones, in the order in which they became free. */
static uint32_t first_freed, last_freed;

static uint32_t number_of(const struct sapwood_space *space)
{
    return (uint32_t)(space - sapwood_events->spaces);
}

static uint32_t *bucket_of(uint64_t handle)
{
    return &buckets[handle * UINT64_C(0x9E3779B97F4A7C15) >> (64 - BUCKET_BITS)];
}

struct sapwood_space *sapwood_place_of(uint64_t handle)
{
    for (uint32_t at = handle == 0 ? 0 : *bucket_of(handle); at != 0; at = places[at - 1].next)
        if (READ(sapwood_events->spaces[at - 1].handle) == handle)
            return &sapwood_events->spaces[at - 1];
    return NULL;
}

/* Notes where the rings are, and which ones have been written since they were noted before. */
static void note_rings(struct place *place)
{
    for (uint32_t ring = 0; ring < SAPWOOD_RINGS; ring++) {
        uint32_t head = sapwood_ring_head(ring);
        place->rings |= (uint32_t)(head != place->heads[ring]) << ring;
        place->heads[ring] = head;
    }
    place->freed = sapwood_ticks();
}

/* Whether no record names a free place any more. */
static bool is_forgotten(const struct place *place)
{
    for (uint32_t ring = 0; ring < SAPWOOD_RINGS; ring++) {
        bool may_name = place->rings >> ring & 1;
        if (may_name && sapwood_ring_head(ring) - place->heads[ring] < sapwood_events->header.ring_records)
            return false;
    }
    return true;
}

static void append_freed(uint32_t number)
{
    places[number - 1].next = 0;
    *(first_freed == 0 ? &first_freed : &places[last_freed - 1].next) = number;
    last_freed = number;
}

/* A communicator is freed, or the last request is gone that named it: once both is so no record of it is written. */
static void free_place(uint32_t number)
{
    struct place *place = &places[number - 1];
    if (place->is_free || READ(place->requests) != 0)
        return;
    place->is_free = true;
    note_rings(place);
    append_freed(number);
}

/* The number of a free place that can be used again, plus 1, which is not listed any more; 0 none. One that
 * a ring of a thread that rests still names goes behind the others, so that it is not in their way. */
static uint32_t freed_taken(void)
{
    for (int tries = 0; tries < FREED_TRIES_MAX && first_freed != 0; tries++) {
        uint32_t number = first_freed;
        first_freed = places[number - 1].next;
        if (is_forgotten(&places[number - 1]))
            return number;
        append_freed(number);
    }
    return 0;
}

/* Readers that have begun to copy the space see by `since` that they may have copied parts of two. */
static struct sapwood_space *emptied(uint32_t number)
{
    struct sapwood_space *space = &sapwood_events->spaces[number - 1];
    WRITE(space->since, UINT64_MAX);
    atomic_thread_fence(memory_order_release);
    space->identity = 0;
    space->size = space->rank = 0;
    WRITE(space->sequence, 0);
    WRITE(space->flags, 0);
    WRITE(space->pending, 0);
    WRITE(space->posted, 0);
    WRITE(space->last, 0);
    WRITE(space->held, 0);
    sapwood_name_dropped(space);
    WRITE(places[number - 1].uses, READ(places[number - 1].uses) + 1);
    return space;
}

struct sapwood_space *sapwood_place_free(void)
{
    uint32_t used = READ(sapwood_events->header.spaces_used);
    if (used < SAPWOOD_SPACES)
        return &sapwood_events->spaces[used];
    uint32_t number = freed_taken();
    return number == 0 ? NULL : emptied(number);
}

void sapwood_place_take(struct sapwood_space *space, uint64_t handle)
{
    uint32_t number = number_of(space) + 1, *bucket = bucket_of(handle);
    struct place *place = &places[number - 1];
    uint64_t since = place->freed;
    note_rings(place);
    place->rings = 0;
    place->is_free = false;
    place->next = *bucket;
    *bucket = number;
    atomic_store_explicit(&space->since, since, memory_order_release);
    atomic_store_explicit(&space->handle, handle, memory_order_release);
    if (number > READ(sapwood_events->header.spaces_used))
        atomic_store_explicit(&sapwood_events->header.spaces_used, number, memory_order_release);
}

/* It is not found by its handle any more. */
static void take_off(const struct sapwood_space *space)
{
    uint32_t number = number_of(space) + 1, *link = bucket_of(READ(space->handle));
    while (*link != number)
        link = &places[*link - 1].next;
    *link = places[number - 1].next;
}

void sapwood_place_moved(struct sapwood_space *space, uint64_t handle)
{
    uint32_t number = number_of(space) + 1, *bucket = bucket_of(handle);
    take_off(space);
    places[number - 1].next = *bucket;
    *bucket = number;
    WRITE(space->handle, handle);
}

void sapwood_place_leave(struct sapwood_space *space)
{
    uint32_t number = number_of(space) + 1;
    take_off(space);
    WRITE(space->handle, 0);
    sapwood_name_released(space);
    /* Of a thread whose request is gone at this moment, and this one, one sees what the other has done. */
    atomic_thread_fence(memory_order_seq_cst);
    free_place(number);
}

uint32_t sapwood_place_uses(const struct sapwood_space *space)
{
    return READ(places[number_of(space)].uses);
}

bool sapwood_place_is_over(uint32_t place, uint32_t uses)
{
    const struct place *one = &places[place];
    bool is_freed = READ(sapwood_events->spaces[place].handle) == 0 && READ(one->requests) == 0;
    return is_freed || READ(one->uses) != uses;
}

void sapwood_place_named(const struct sapwood_space *space, int amount)
{
    struct place *place = &places[number_of(space)];
    uint32_t requests = READ(place->requests) + (uint32_t)amount;
    WRITE(place->requests, requests);
    if (requests != 0)
        return;
    if (__builtin_expect((sapwood_table->header.flags & SAPWOOD_FLAG_THREAD_MULTIPLE) != 0, 0))
        atomic_thread_fence(memory_order_seq_cst);
    if (__builtin_expect(READ(space->handle) != 0, 1))
        return;
    sapwood_table_lock();
    if (READ(space->handle) == 0)
        free_place(number_of(space) + 1);
    sapwood_table_unlock();
}
