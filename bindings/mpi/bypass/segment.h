/* The shared memory of one communicator: layout, making, mapping.
 *
 *   +---------------------------------------------------------------+
 *   | header: magic, version, shape; one struct bypass_member per rank
 *   | slots:  struct bypass_slot [ring]
 *   | nodes:  struct bypass_node [ring][size]      control and small operands
 *   | chunks: two of chunk_bytes [ring][size]      operand and result of large ones
 *   | world:  only of MPI_COMM_WORLD: struct bypass_lateness and
 *   |         struct bypass_account, one of each per rank
 *   | edges:  the same, if counters are asked for: struct bypass_edge [ranks][ranks]
 *   +---------------------------------------------------------------+
 *
 * Instance n of a communicator uses slot n % ring in generation n / ring + 1. The
 * memory is a sealed memfd: it has no name, and ends with its last process.
 */
#ifndef SAPWOOD_BYPASS_SEGMENT_H
#define SAPWOOD_BYPASS_SEGMENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "account.h"

enum {
    BYPASS_VERSION = 2,
    /* 32 doubles. */
    BYPASS_INLINE_BYTES = 256,
};

/* A place in the tree for one instance. */
struct bypass_node {
    _Atomic uint32_t contributions; /* operands and results that have come */
    _Atomic uint32_t generation;    /* of the operand below */
    uint64_t signature;             /* what the rank asked for; must be equal at all */
    uint64_t arrived_ns;            /* when the rank called */
    uint64_t ready_ns;              /* when its subtree was complete */
    unsigned char operand[BYPASS_INLINE_BYTES];
    unsigned char result[BYPASS_INLINE_BYTES];
    unsigned char padding[32];
};
static_assert(sizeof(struct bypass_node) % 64 == 0, "nodes start at cache lines");

/* What the ranks of one instance share. */
struct bypass_slot {
    _Atomic uint32_t done;          /* generation whose result can be read */
    _Atomic uint32_t done_sleepers;
    _Atomic uint32_t mismatch;      /* ranks disagree on the arguments */
    _Atomic uint32_t left;          /* ranks that have read the result, of those that all do */
    unsigned char padding[48];
    _Atomic uint32_t retired;       /* last generation that needs the slot no more */
    _Atomic uint32_t retired_sleepers;
    unsigned char more_padding[56];
};
static_assert(sizeof(struct bypass_slot) == 128, "waiters for one word do not disturb the other's");

struct bypass_member {
    _Atomic uint64_t calls;         /* that this rank began, to name one that stays away */
    uint32_t pid;
    uint32_t padding;
};

struct bypass_header {
    char magic[8];
    uint32_t version, size;
    uint64_t cookie;
    uint32_t ring, chunk_bytes;
    uint64_t slots, nodes, chunks, world, edges, bytes; /* offsets, and the whole */
    uint64_t edge_ranks; /* 0 if there are no edges */
};

/* A mapping in this process. */
struct bypass_segment {
    struct bypass_header *header;
    struct bypass_member *members;
    struct bypass_slot *slots;
    struct bypass_node *nodes;
    unsigned char *chunks;
    struct bypass_lateness *lateness;
    struct bypass_account *accounts;
    struct bypass_edges edges;
    uint32_t size, ring, chunk_bytes;
};

/* Makes the memory for `size` ranks; returns its descriptor, or -1. */
int bypass_segment_make(struct bypass_segment *segment, uint32_t size, uint64_t cookie, bool for_world);

/* Maps what process `pid` has open as `fd`, if it is the one with this cookie. */
bool bypass_segment_map(struct bypass_segment *segment, int pid, int fd, uint64_t cookie);

void bypass_segment_unmap(struct bypass_segment *segment);

static inline struct bypass_node *bypass_node_at(const struct bypass_segment *s, uint32_t slot, uint32_t place)
{
    return &s->nodes[(size_t)slot * s->size + place];
}

static inline unsigned char *bypass_chunk_at(const struct bypass_segment *s, uint32_t slot, uint32_t place)
{
    return s->chunks + ((size_t)slot * s->size + place) * 2 * s->chunk_bytes;
}

static inline unsigned char *bypass_operand(const struct bypass_segment *s, uint32_t slot, uint32_t place,
                                            size_t bytes)
{
    return bytes <= BYPASS_INLINE_BYTES ? bypass_node_at(s, slot, place)->operand : bypass_chunk_at(s, slot, place);
}

static inline unsigned char *bypass_result(const struct bypass_segment *s, uint32_t slot, uint32_t place, size_t bytes)
{
    return bytes <= BYPASS_INLINE_BYTES ? bypass_node_at(s, slot, place)->result
                                        : bypass_chunk_at(s, slot, place) + s->chunk_bytes;
}

#endif
