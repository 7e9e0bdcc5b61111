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

/* Copies the name into the table. Its offset there, or -1 when it does not fit. */
static int64_t name_stored(const char *name)
{
    struct sapwood_header *header = &sapwood_table->header;
    size_t bytes = strlen(name) + 1;
    uint32_t used = atomic_load_explicit(&header->names_used, memory_order_relaxed);
    if (bytes == 1 || bytes > SAPWOOD_REGION_NAME_BYTES_MAX + 1 || bytes > SAPWOOD_NAMES_BYTES - used)
        return -1;
    memcpy(sapwood_table->names + used, name, bytes);
    atomic_store_explicit(&header->names_used, used + (uint32_t)bytes, memory_order_release);
    return used;
}

/* Callers hold the table's lock. NULL when there is no room. */
static struct region *region_made(const char *name)
{
    struct region *region = bucket_of(name);
    if (atomic_load_explicit(&region->name, memory_order_relaxed) != NULL)
        return region;
    bool full = region_count == REGIONS_MAX ||
                atomic_load_explicit(&sapwood_table->header.slots_used, memory_order_relaxed) == SAPWOOD_SLOTS;
    int64_t offset = full ? -1 : name_stored(name);
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

SAPWOOD_EXPORT void sapwood_region_begin(const char *name)
{
    if (name == NULL || is_off())
        return;
    sapwood_clock_ready();
    struct region *region = region_named(name);
    if (region == NULL || stack.depth == SAPWOOD_REGION_DEPTH_MAX) {
        stack.too_deep += region != NULL;
        drop();
        return;
    }
    stack.open[stack.depth++] = (struct open_region){region, sapwood_ticks()};
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
    uint32_t place = region->name == NULL ? 0 : place_of(region);
    bool counting = atomic_load_explicit(&sapwood_phase, memory_order_acquire) >= SAPWOOD_COUNTING;
    if (place == 0 || !counting) {
        stack.depth = place == 0 ? stack.depth : place - 1;
        drop();
        return;
    }
    for (; stack.depth > place; stack.depth--)
        drop();
    stack.depth--;
    sapwood_add(&region->slot->count, 1, true);
    /* A region inside one of its own name adds no time: the outer one has it. */
    if (place_of(region) == 0)
        sapwood_add(&region->slot->time_ns, sapwood_ns(now - stack.open[stack.depth].begin), true);
}
