/* The hops of bypassed reductions: when a part has come to a place of the tree of libsapwood-bypass, when the place
 * has sent up, and when a rank came and left. They are in rings of their own in the event file, behind those of calls
 * (events.h), of which each has one writer: a thread of this process that has called a reduction. That thread notes
 * what it does at any place of the tree, also at places of other ranks, whose late parts it folds. So what is known
 * of one reduction lies in the rings of all its ranks.
 *
 *   SAPWOOD_MPI_HOPS   1: the event file has these rings, and hops are noted while calls are recorded
 *
 * The shim shows `sapwood_mpi_hops`, which the bypass looks up when MPI is initialised. Without it, or while nothing is
 * recorded, a reduction pays one relaxed load.
 *
 *   record, 32 bytes, as four words of 64 bits
 *     0  time             u64      CLOCK_MONOTONIC, nanoseconds: the processes of a bypassed reduction are on one host
 *     8  communicator     u64      the same number in all its processes
 *    16  kind             u8       SAPWOOD_HOP_
 *    17  flags            u8       SAPWOOD_HOP_ flags
 *    18  size             u16      ranks of the communicator; 65535 for more
 *    20  instance         u32      the low bits of its number on the communicator
 *    24  rank             u32      the one at whose place it happened, in MPI_COMM_WORLD
 *    28  child            u32      of ARRIVED the one whose part came, else the same as rank
 *
 * Of a call whose operand takes several instances the first one is noted.
 */
#ifndef SAPWOOD_HOPS_H
#define SAPWOOD_HOPS_H

#include "ring.h"
#include "visibility.h"

enum {
    SAPWOOD_HOPS_VERSION = 1,
    /* As many threads of a rank may note hops. */
    SAPWOOD_HOP_RINGS = 4,

    /* The rank has called. */
    SAPWOOD_HOP_ENTERED = 1,
    /* The part of a child, complete with all below it, has come to its parent's place. */
    SAPWOOD_HOP_ARRIVED = 2,
    /* The place is folded: its part goes up, or at the root the result is there. */
    SAPWOOD_HOP_SENT_UP = 3,
    /* The rank has read the result, in an operation that gives it to all. */
    SAPWOOD_HOP_RECEIVED_DOWN = 4,
    /* The rank returns from its call. */
    SAPWOOD_HOP_EXIT = 5,

    /* Of ARRIVED: the parent had called by then. */
    SAPWOOD_HOP_LATE = 1,
    /* All ranks read the result. */
    SAPWOOD_HOP_TO_ALL = 2,
    /* It is the tree's root. */
    SAPWOOD_HOP_ROOT = 4,
};

/* What the shim shows to the bypass. All but the first two is in place before is_recording is first set. */
struct sapwood_hops {
    uint32_t version;
    _Atomic uint32_t is_recording;
    /* Rings that threads have taken, or have asked for in vain. */
    _Atomic uint32_t taken;
    uint32_t rings;
    uint32_t ring_records;
    uint32_t ring_bytes;
    struct sapwood_ring *first;
    _Atomic uint64_t *without_ring;
};

#define SAPWOOD_HOPS_NAME "sapwood_mpi_hops"

#endif
