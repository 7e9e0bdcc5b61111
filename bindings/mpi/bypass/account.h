/* What is counted: calls taken and left to MPI, waits, and how late each child was. */
#ifndef SAPWOOD_BYPASS_ACCOUNT_H
#define SAPWOOD_BYPASS_ACCOUNT_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "settings.h"

/* Why a call was left to the MPI library. */
enum bypass_cause {
    BYPASS_NOT_ANNOUNCED,  /* no launcher told job and rank, or MPI began past the wrappers */
    BYPASS_NOT_ALL_HERE,   /* a member is on another host, or has not this library */
    BYPASS_INTER,          /* an inter-communicator */
    BYPASS_FEW,            /* fewer ranks than the settings ask for */
    BYPASS_NO_MEMORY,      /* shared memory was refused to a member */
    BYPASS_FIRST_CALLS,    /* the communicator is too young */
    BYPASS_OPERATION,      /* a user's, or one that MPI does not define for the type */
    BYPASS_TYPE,           /* a derived type */
    BYPASS_EMPTY,          /* no elements */
    BYPASS_LARGE,          /* beyond the measured bound */
    BYPASS_ARGUMENT,       /* MPI is to report it */
    BYPASS_KIND_OFF,       /* the function was not asked for */
    BYPASS_CAUSES
};

/* The counters of one rank. */
struct bypass_account {
    _Atomic uint64_t taken[BYPASS_KINDS];
    _Atomic uint64_t left[BYPASS_CAUSES];
    _Atomic uint64_t completed;      /* instances whose last contribution was this rank's */
    _Atomic uint64_t folds;
    _Atomic uint64_t waits;          /* for a result */
    _Atomic uint64_t held;           /* waits for a free slot: the rank was too far ahead */
    _Atomic uint64_t sleeps;
    _Atomic uint64_t pokes;          /* calls into MPI's progress while waiting */
    _Atomic uint64_t wait_ns;
    _Atomic uint64_t communicators;
    _Atomic uint64_t mismatches;
    _Atomic uint64_t redone;         /* results that the root computed after a death */
};

/* How one rank came to its parent in the trees, whatever the communicator. */
struct bypass_lateness {
    _Atomic uint64_t early;          /* its subtree was complete before its parent called */
    _Atomic uint64_t expected;       /* its parent was waiting */
    _Atomic uint64_t late;           /* its parent had left */
    _Atomic uint64_t late_ns;        /* sum over expected and late */
    _Atomic uint64_t late_ns_max;
    uint64_t padding[3];
};
static_assert(sizeof(struct bypass_lateness) == 64, "one cache line per child");

/* The way from a child to its parent in the trees, whatever the communicator. That of a rank to itself
 * has how often it folded, and how often its own call was then the last to come. */
struct bypass_edge {
    _Atomic uint64_t instances;
    _Atomic uint64_t last;           /* the parent's other contributions had come before */
    _Atomic uint64_t late;           /* the child's subtree was complete after the parent's call */
    _Atomic uint64_t late_ns;        /* by how much, summed over these */
};

/* The edges of the job's ranks in MPI_COMM_WORLD, [parent][child]. */
struct bypass_edges {
    struct bypass_edge *at;          /* NULL if counters are not asked for, or of too many ranks */
    uint32_t ranks;
};

enum { BYPASS_EDGE_RANKS_MAX = 512 };

static inline struct bypass_edge *bypass_edge_at(const struct bypass_edges *edges, uint32_t parent, uint32_t child)
{
    return &edges->at[(size_t)parent * edges->ranks + child];
}

extern SAPWOOD_HIDDEN struct bypass_account bypass_account;

static inline void bypass_count(_Atomic uint64_t *counter, uint64_t more)
{
    atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

struct bypass_segment;

/* Writes the job's counters to the JSON file and to standard error, if asked. `world`
 * is the segment of MPI_COMM_WORLD, or NULL: then rank 0 tells only of itself. */
void bypass_account_tell(const struct bypass_segment *world, const struct bypass_lateness *lateness, int rank,
                         int size);

#endif
