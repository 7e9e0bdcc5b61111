/* A ring of records in shared memory: one writer, which waits for no reader and overwrites the oldest. events.h
 * draws it. There is no lock, no atomic read-modify-write, no allocation and no system call in it.
 */
#ifndef SAPWOOD_RING_H
#define SAPWOOD_RING_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

struct sapwood_record {
    _Atomic uint64_t words[4];
};

struct sapwood_ring {
    _Atomic uint64_t head;
    uint64_t reserved[7];
    struct sapwood_record records[];
};

static_assert(sizeof(struct sapwood_record) == 32, "record bytes");
static_assert(sizeof(struct sapwood_ring) == 64, "ring header bytes");

/* Writes one record into a ring of `records`, a power of two; how many it has had then. */
static inline uint64_t sapwood_ring_put(struct sapwood_ring *ring, uint32_t records, const uint64_t words[4])
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    _Atomic uint64_t *into = ring->records[head & (records - 1)].words;
    /* A reader that sees a part of this record sees that head had come here. */
    atomic_thread_fence(memory_order_release);
    for (int word = 0; word < 4; word++)
        atomic_store_explicit(&into[word], words[word], memory_order_relaxed);
    atomic_store_explicit(&ring->head, head + 1, memory_order_release);
    return head + 1;
}

#endif
