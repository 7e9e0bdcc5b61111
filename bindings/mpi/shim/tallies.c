/* See tallies.h. A tally is found by its words `key` and `handle`; both stay as they are once
 * the key is stored, but for a handle that is forgotten. */
#include "tallies.h"

#include <string.h>

/* Of a subject whose handle was freed: no address, no handle, no rank. */
#define FORGOTTEN UINT64_MAX
/* Names of subjects leave at least this many bytes to regions. */
enum { NAMES_BYTES_LEFT = SAPWOOD_NAMES_BYTES / 4, NAMES_KNOWN = 256 };

static_assert((SAPWOOD_TALLIES & (SAPWOOD_TALLIES - 1)) == 0, "a place is a mask");

static uint32_t place_of(uint64_t key, uint64_t handle)
{
    uint64_t mixed = (key * 31 + handle) * UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(mixed >> 40) & (SAPWOOD_TALLIES - 1);
}

/* The tally, or the free one where it belongs; NULL when there is neither. */
static struct sapwood_tally *tally_of(uint64_t key, uint64_t handle)
{
    uint32_t place = place_of(key, handle);
    for (uint32_t tries = 0; tries < SAPWOOD_TALLIES; tries++, place = (place + 1) & (SAPWOOD_TALLIES - 1)) {
        struct sapwood_tally *tally = &sapwood_table->tallies[place];
        uint64_t known = atomic_load_explicit(&tally->key, memory_order_acquire);
        if (known == 0 || (known == key && atomic_load_explicit(&tally->handle, memory_order_relaxed) == handle))
            return tally;
    }
    return NULL;
}

uint32_t sapwood_tally_name(const char *text, size_t length)
{
    static uint32_t known[NAMES_KNOWN];
    static uint32_t count;
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(sapwood_table->names + known[i] - 1, text) == 0)
            return known[i];
    uint32_t used = atomic_load_explicit(&sapwood_table->header.names_used, memory_order_relaxed);
    if (length == 0 || count == NAMES_KNOWN || used + length + NAMES_BYTES_LEFT > SAPWOOD_NAMES_BYTES)
        return 0;
    int64_t offset = sapwood_name_stored(text, length);
    return offset < 0 ? 0 : (known[count++] = (uint32_t)offset + 1);
}

/* Takes the free tally, unless another thread was first. */
static struct sapwood_tally *tally_made(unsigned kind, uint64_t key, uint64_t handle, const struct sapwood_call *call,
                                        sapwood_tally_fill *fill)
{
    static uint64_t subjects;
    sapwood_table_lock();
    struct sapwood_tally *tally = tally_of(key, handle);
    if (tally != NULL && atomic_load_explicit(&tally->key, memory_order_relaxed) == 0) {
        SAPWOOD_TELL(tally->subject, kind == SAPWOOD_TALLY_PEER ? handle : ++subjects);
        SAPWOOD_TELL(tally->name, 0);
        if (fill != NULL)
            fill(tally, call);
        else
            SAPWOOD_TELL(tally->name, sapwood_tally_subject_name(kind, call));
        SAPWOOD_TELL(tally->handle, handle);
        atomic_store_explicit(&tally->key, key, memory_order_release);
    }
    sapwood_table_unlock();
    return tally;
}

void sapwood_tally(unsigned kind, uint64_t function, uint64_t handle, const struct sapwood_call *call, uint64_t ns,
                   sapwood_tally_fill *fill)
{
    uint64_t key = (uint64_t)kind << 56 | function;
    struct sapwood_tally *tally = tally_of(key, handle);
    if (tally != NULL && atomic_load_explicit(&tally->key, memory_order_relaxed) == 0)
        tally = tally_made(kind, key, handle, call, fill);
    if (tally == NULL) {
        sapwood_add(&sapwood_table->header.tallies_dropped, 1, true);
        return;
    }
    bool contended = atomic_load_explicit(&sapwood_phase, memory_order_relaxed) != SAPWOOD_COUNTING;
    sapwood_add(&tally->count, 1, contended);
    sapwood_add(&tally->time_ns, ns, contended);
    sapwood_add(&tally->bytes, call->bytes, contended);
}

void sapwood_tally_later(unsigned kind, uint64_t function, uint64_t handle, uint64_t bytes)
{
    struct sapwood_tally *tally = tally_of((uint64_t)kind << 56 | function, handle);
    /* A call that found no room was counted as dropped when it was made. */
    if (tally != NULL && atomic_load_explicit(&tally->key, memory_order_relaxed) != 0)
        sapwood_add(&tally->bytes, bytes, true);
}

void sapwood_tallies_forget(unsigned kind, uint64_t handle)
{
    sapwood_table_lock();
    for (uint32_t place = 0; place < SAPWOOD_TALLIES; place++) {
        struct sapwood_tally *tally = &sapwood_table->tallies[place];
        uint64_t key = atomic_load_explicit(&tally->key, memory_order_relaxed);
        if (key >> 56 == kind && atomic_load_explicit(&tally->handle, memory_order_relaxed) == handle)
            SAPWOOD_TELL(tally->handle, FORGOTTEN);
    }
    sapwood_table_unlock();
}
