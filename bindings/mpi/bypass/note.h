/* Noting the hops of reductions in rings that the shim of `sapwood mpi` shows; ../shim/hops.h draws them.
 *
 * No lock, no allocation and no system call but that of the clock, where it is one. A thread takes a ring of its own
 * with its first hop, and keeps it.
 */
#ifndef SAPWOOD_BYPASS_NOTE_H
#define SAPWOOD_BYPASS_NOTE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "fold.h"
#include "hops.h"

/* Looks for the rings; the process has one thread that calls MPI. */
void bypass_hops_find(void);

/* The word that says whether hops are noted; one that is always 0 where there are no rings. */
extern SAPWOOD_HIDDEN const _Atomic uint32_t *bypass_hops_switch;

static inline bool bypass_hops_are_noted(void)
{
    return __builtin_expect(atomic_load_explicit(bypass_hops_switch, memory_order_relaxed) != 0, 0);
}

/* What happened at the place of `rank`; both ranks are of MPI_COMM_WORLD. */
struct bypass_hop {
    uint64_t time_ns;
    uint32_t kind, flags;
    uint32_t rank, child;
};

void bypass_hop_put(const struct bypass_work *work, const struct bypass_hop *hop);

/* The rank itself has called, read the result, or returns. */
static inline void bypass_note_own(const struct bypass_work *work, uint32_t kind, uint64_t time_ns)
{
    if (!work->is_noted)
        return;
    uint32_t rank = (uint32_t)work->c->world_ranks[work->c->rank];
    bypass_hop_put(work, &(struct bypass_hop){.time_ns = time_ns, .kind = kind, .rank = rank, .child = rank});
}

#endif
