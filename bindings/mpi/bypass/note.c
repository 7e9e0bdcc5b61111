/* Noting hops; see note.h. */
#define _GNU_SOURCE
#include "note.h"

static const _Atomic uint32_t never;
const _Atomic uint32_t *bypass_hops_switch = &never;
static struct sapwood_hops *hops;

/* The ring of this thread; NULL before its first hop, and where there are more threads than rings. */
static _Thread_local struct sapwood_ring *own_ring __attribute__((tls_model("initial-exec")));
static _Thread_local bool has_asked __attribute__((tls_model("initial-exec")));

void bypass_hops_find(void)
{
    struct sapwood_hops *found = sapwood_symbol(SAPWOOD_HOPS_NAME);
    if (found == NULL || found->version != SAPWOOD_HOPS_VERSION)
        return;
    hops = found;
    bypass_hops_switch = &found->is_recording;
}

static struct sapwood_ring *ring_of_thread(void)
{
    if (__builtin_expect(has_asked, 1))
        return own_ring;
    has_asked = true;
    uint32_t number = atomic_fetch_add_explicit(&hops->taken, 1, memory_order_relaxed);
    if (number < hops->rings)
        own_ring = (struct sapwood_ring *)((char *)hops->first + (size_t)number * hops->ring_bytes);
    return own_ring;
}

void bypass_hop_put(const struct bypass_work *work, const struct bypass_hop *hop)
{
    struct sapwood_ring *ring = ring_of_thread();
    if (ring == NULL) {
        atomic_fetch_add_explicit(hops->without_ring, 1, memory_order_relaxed);
        return;
    }
    uint32_t size = work->c->size < UINT16_MAX ? work->c->size : UINT16_MAX;
    uint32_t flags = hop->flags | (work->to_all ? SAPWOOD_HOP_TO_ALL : 0);
    const uint64_t words[4] = {
        hop->time_ns,
        work->c->segment.header->cookie,
        (uint64_t)hop->kind | (uint64_t)flags << 8 | (uint64_t)size << 16 | (uint64_t)work->instance << 32,
        (uint64_t)hop->rank | (uint64_t)hop->child << 32,
    };
    sapwood_ring_put(ring, hops->ring_records, words);
}
