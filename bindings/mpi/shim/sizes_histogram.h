/* How many transfers of an event had how many bytes: a row of the table for each slot
 * of a function that moves any, in size classes of powers of two.
 */
#ifndef SAPWOOD_SIZES_HISTOGRAM_H
#define SAPWOOD_SIZES_HISTOGRAM_H

#include "observe.h"

/* Gives a new slot its row; none when all are taken. Callers hold the table's lock. */
static inline void sapwood_histogram_take(struct sapwood_slot *slot)
{
    _Atomic uint32_t *used = &sapwood_table->header.histograms_used;
    uint32_t row = atomic_load_explicit(used, memory_order_relaxed);
    if (row == SAPWOOD_HISTOGRAMS)
        return;
    atomic_store_explicit(used, row + 1, memory_order_relaxed);
    atomic_store_explicit(&slot->histogram, row + 1, memory_order_release);
}

/* 0 is 0 bytes, 1 is 1, 2 is 2, 3 is 3..4, as table.h has them. */
static SAPWOOD_HOT unsigned sapwood_histogram_class(uint64_t bytes)
{
    if (bytes <= 1)
        return (unsigned)bytes;
    unsigned class = 65 - (unsigned)__builtin_clzll(bytes - 1);
    return class < SAPWOOD_HISTOGRAM_CLASSES ? class : SAPWOOD_HISTOGRAM_CLASSES - 1;
}

static SAPWOOD_HOT void sapwood_histogram_add(struct sapwood_slot *slot, uint64_t bytes, bool contended)
{
    uint32_t row = atomic_load_explicit(&slot->histogram, memory_order_relaxed);
    if (__builtin_expect(row == 0, 0))
        return;
    sapwood_add(&sapwood_table->histograms[row - 1].transfers[sapwood_histogram_class(bytes)], 1, contended);
}

#endif
