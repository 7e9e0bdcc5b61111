/* Named regions of the program: sapwood_region_begin and sapwood_region_end.
 *
 * Each thread keeps a stack of its open regions; a region's slot gets the time
 * when it ends. A region may begin before MPI_Init; it counts if it ends after.
 * The rules for misuse are in sapwood_mpi.h. Any thread may call at any time, so
 * additions are always atomic. */
#include <string.h>

#include "observe.h"
#include "sapwood_mpi.h"

enum { BUCKETS = 1024, REGIONS_MAX = 768 };

struct region {
    const char *_Atomic name;
    struct sapwood_slot *slot;
};

struct open_region {
    struct region *region;
    uint64_t begin;
};

static struct region regions[BUCKETS];
static uint32_t region_count;

static _Thread_local struct {
    struct open_region open[SAPWOOD_REGION_DEPTH_MAX];
    uint32_t depth;
    uint32_t too_deep; /* begins beyond the stack, whose ends are still to come */
    uint32_t nameless; /* begins whose names found no room, whose ends are still to come */
} stack __attribute__((tls_model("initial-exec")));

static bool is_off(void)
{
    return atomic_load_explicit(&sapwood_phase, memory_order_relaxed) == SAPWOOD_OFF;
}

static void drop(void)
{
    if (sapwood_table != NULL)
        sapwood_add(&sapwood_table->header.dropped, 1, true);
}

static uint32_t hash_of(const char *name)
{
    uint32_t hash = 2166136261u;
    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash;
}

/* The region's bucket, or the empty one where it belongs. */
static struct region *bucket_of(const char *name)
{
    for (uint32_t place = hash_of(name) % BUCKETS;; place = (place + 1) % BUCKETS) {
        const char *known = atomic_load_explicit(&regions[place].name, memory_order_acquire);
        if (known == NULL || strcmp(known, name) == 0)
            return &regions[place];
    }
}

/* Callers hold the table's lock. NULL when there is no room. */
static struct region *region_made(const char *name)
{
    struct region *region = bucket_of(name);
    if (atomic_load_explicit(&region->name, memory_order_relaxed) != NULL)
        return region;
    bool full = region_count == REGIONS_MAX ||
                atomic_load_explicit(&sapwood_table->header.slots_used, memory_order_relaxed) == SAPWOOD_SLOTS;
    size_t length = strlen(name);
    bool fits = !full && length > 0 && length <= SAPWOOD_REGION_NAME_BYTES_MAX;
    int64_t offset = fits ? sapwood_name_stored(name, length) : -1;
    if (offset < 0)
        return NULL;
    region->slot = sapwood_slot_take(SAPWOOD_KEY_REGION | (uint64_t)offset);
    region_count++;
    atomic_store_explicit(&region->name, sapwood_table->names + offset, memory_order_release);
    return region;
}

static struct region *region_named(const char *name)
{
    struct region *region = bucket_of(name);
    if (atomic_load_explicit(&region->name, memory_order_acquire) != NULL)
        return region;
    sapwood_table_lock();
    region = sapwood_table_make() == NULL ? NULL : region_made(name);
    sapwood_table_unlock();
    return region;
}

static void tell_innermost(void)
{
    const struct region *region = stack.depth == 0 ? NULL : stack.open[stack.depth - 1].region;
    sapwood_activity_region(region == NULL ? 0 : atomic_load_explicit(&region->slot->key, memory_order_relaxed));
}

SAPWOOD_EXPORT void sapwood_region_begin(const char *name)
{
    if (name == NULL || is_off())
        return;
    sapwood_clock_ready();
    struct region *region = region_named(name);
    if (region == NULL || stack.depth == SAPWOOD_REGION_DEPTH_MAX) {
        if (region == NULL)
            stack.nameless++;
        else
            stack.too_deep++;
        drop();
        return;
    }
    stack.open[stack.depth++] = (struct open_region){region, sapwood_ticks()};
    tell_innermost();
}

/* Place of the innermost open region of that name plus one; 0 is none. */
static uint32_t place_of(const struct region *region)
{
    uint32_t place = stack.depth;
    while (place > 0 && stack.open[place - 1].region != region)
        place--;
    return place;
}

SAPWOOD_EXPORT void sapwood_region_end(const char *name)
{
    uint64_t now = sapwood_ticks();
    if (name == NULL || is_off())
        return;
    if (stack.too_deep > 0) {
        stack.too_deep--;
        return;
    }
    struct region *region = bucket_of(name);
    if (region->name == NULL && stack.nameless > 0) {
        stack.nameless--; /* its begin was dropped */
        return;
    }
    uint32_t place = region->name == NULL ? 0 : place_of(region);
    int phase = atomic_load_explicit(&sapwood_phase, memory_order_acquire);
    if (place == 0 || phase < SAPWOOD_COUNTING) {
        stack.depth = place == 0 ? stack.depth : place - 1;
        if (sapwood_table != NULL)
            tell_innermost();
        if (place == 0 || phase != SAPWOOD_PAUSED)
            drop();
        return;
    }
    for (; stack.depth > place; stack.depth--)
        drop();
    stack.depth--;
    tell_innermost();
    uint32_t groups = atomic_load_explicit(&sapwood_groups, memory_order_relaxed);
    if ((groups & SAPWOOD_GROUP_REGIONS) == 0)
        return;
    if (groups & SAPWOOD_GROUP_CALLS)
        sapwood_add(&region->slot->count, 1, true);
    /* A region inside one of its own name adds no time: the outer one has it. */
    if (place_of(region) == 0 && (groups & SAPWOOD_GROUP_TIME) != 0)
        sapwood_add(&region->slot->time_ns, sapwood_ns(now - stack.open[stack.depth].begin), true);
}
