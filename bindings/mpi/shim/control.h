/* What a leaf tells its rank while the program runs, and what the rank answers.
 *
 * The control page is a memfd of its own, of fixed, sealed size, that leaf and rank
 * both write; the profile table stays the rank's alone. Its descriptor goes to the
 * leaf behind the table's. A wrapped call looks at one word of it, `pending`, by a
 * relaxed load; all else happens when that word is not 0.
 *
 * All numbers little-endian, all at their natural alignment. Offsets in bytes.
 *
 *     0  magic            8 bytes  "SWCONTRL"
 *     8  version          u32      1
 *    12  page_bytes       u32      4096
 *
 *   written by the leaf
 *    16  pending          u32      1 after each change; the rank sets it to 0
 *    20  change           u32      number of the settings below, from 1; 0 none yet
 *    24  groups           u32      SAPWOOD_GROUP_ bits: what is counted
 *    28  flags            u32      SAPWOOD_CONTROL_ bits
 *    32  interval_ns      u64      time between two rounds; 0 if they do not go by time
 *    40  sampling_ns      u64      time between two samples of stacks; 0 none
 *    64  taken            u64      marks whose snapshots the leaf has copied, or that came before
 *                                  a leaf has attached
 *    72  armed            u32      1 if the leaf wants a word at the next mark; the rank
 *                                  sets it to 0 and sends one byte. A leaf that has attached gets
 *                                  none, and looks from time to time
 *
 *   written by the rank
 *   128  obeyed           u32      number of the settings that it obeys
 *   132  end              u32      how it ends: 0 not, 1 exit, 2 MPI_Abort
 *   136  code             i32      exit code, or the error code of MPI_Abort
 *   140  wants_advice     u32      1 once the program has asked for advice
 *   144  ended_ns         u64      CLOCK_MONOTONIC at that end
 *   152  partly           u32      1 once settings left out calls or their time
 *
 *   advice, written by the leaf: the latest reduced result
 *   256  sequence         u32      odd while it is written
 *   260  entries          u32      at most SAPWOOD_ADVICE_ENTRIES
 *   264  round            u64      number of the round, from 1
 *   272  ranks            u32      covered ranks
 *   276  slowest_rank     u32      the rank with the most time outside of MPI
 *   280  compute_mean_ns  u64      time outside of MPI, mean over the ranks
 *   288  compute_max_ns   u64
 *   296  slowest_class    24 bytes functional class with the most time, padded with NUL
 *   320  entries, 64 bytes each, those with the most time first
 *     0  time_mean_ns     u64
 *     8  time_max_ns      u64
 *    16  count            u64      of all ranks
 *    24  ranks            u32      that have the event
 *    28  max_rank         u32
 *    32  name             32 bytes padded with NUL, cut to 31 bytes
 */
#ifndef SAPWOOD_CONTROL_H
#define SAPWOOD_CONTROL_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "visibility.h"

#define SAPWOOD_CONTROL_MAGIC "SWCONTRL"
#define SAPWOOD_CONTROL_VERSION 1u

enum {
    SAPWOOD_CONTROL_BYTES = 4096,
    SAPWOOD_ADVICE_ENTRIES = 59,
    SAPWOOD_ADVICE_NAME_BYTES = 32,

    /* The classes in the order of functions.table's text. */
    SAPWOOD_GROUP_COLLECTIVE = 1 << 0,
    SAPWOOD_GROUP_POINT_TO_POINT = 1 << 1,
    SAPWOOD_GROUP_WAIT = 1 << 2,
    SAPWOOD_GROUP_RMA = 1 << 3,
    SAPWOOD_GROUP_FILE = 1 << 4,
    SAPWOOD_GROUP_OTHER = 1 << 5,
    SAPWOOD_GROUP_REGIONS = 1 << 6,
    SAPWOOD_GROUP_CALLS = 1 << 8,
    SAPWOOD_GROUP_TIME = 1 << 9,
    SAPWOOD_GROUP_BYTES = 1 << 10,
    /* Left out by the leaf; the rank tells its activities always. */
    SAPWOOD_GROUP_ACTIVITIES = 1 << 11,
    SAPWOOD_GROUPS_COUNTED = 0x77f,

    SAPWOOD_CONTROL_SELECTED = 1 << 0,
    SAPWOOD_CONTROL_TRACING = 1 << 1,

    SAPWOOD_END_NONE = 0,
    SAPWOOD_END_EXIT = 1,
    SAPWOOD_END_ABORT = 2,
};

struct sapwood_advice_entry {
    _Atomic uint64_t time_mean_ns;
    _Atomic uint64_t time_max_ns;
    _Atomic uint64_t count;
    _Atomic uint32_t ranks;
    _Atomic uint32_t max_rank;
    char name[SAPWOOD_ADVICE_NAME_BYTES];
};

struct sapwood_control {
    char magic[8];
    uint32_t version;
    uint32_t page_bytes;
    _Atomic uint32_t pending;
    _Atomic uint32_t change;
    _Atomic uint32_t groups;
    _Atomic uint32_t flags;
    _Atomic uint64_t interval_ns;
    _Atomic uint64_t sampling_ns;
    uint64_t reserved_to_64[2];
    _Atomic uint64_t taken;
    _Atomic uint32_t armed;
    uint32_t reserved_to_128[13];
    _Atomic uint32_t obeyed;
    _Atomic uint32_t end;
    _Atomic int32_t code;
    _Atomic uint32_t wants_advice;
    _Atomic uint64_t ended_ns;
    _Atomic uint32_t partly;
    uint32_t reserved_to_256[25];
    _Atomic uint32_t sequence;
    _Atomic uint32_t entries;
    _Atomic uint64_t round;
    _Atomic uint32_t ranks;
    _Atomic uint32_t slowest_rank;
    _Atomic uint64_t compute_mean_ns;
    _Atomic uint64_t compute_max_ns;
    char slowest_class[24];
    struct sapwood_advice_entry entry[SAPWOOD_ADVICE_ENTRIES];
} __attribute__((aligned(SAPWOOD_CONTROL_BYTES)));

static_assert(sizeof(struct sapwood_control) == SAPWOOD_CONTROL_BYTES, "control bytes");
static_assert(offsetof(struct sapwood_control, taken) == 64, "taken");
static_assert(offsetof(struct sapwood_control, obeyed) == 128, "obeyed");
static_assert(offsetof(struct sapwood_control, ended_ns) == 144, "ended");
static_assert(offsetof(struct sapwood_control, sequence) == 256, "advice");
static_assert(offsetof(struct sapwood_control, entry) == 320, "entries of advice");

/* Lies in the shim's own data, so that its address is a constant; the memfd is mapped
 * over it. Zeros before that, and for ever where there is no leaf. */
extern SAPWOOD_HIDDEN struct sapwood_control sapwood_control;
/* What is counted, as the settings that are obeyed say. */
extern SAPWOOD_HIDDEN _Atomic uint32_t sapwood_groups;

/* Maps the page; its descriptor, or -1 when this process cannot be controlled. It stays open where no
 * leaf takes it: `sapwood mpi attach` finds the page by it, as it finds the table. */
SAPWOOD_HIDDEN int sapwood_control_make(void);
/* Reads SAPWOOD_MPI_EVERY and takes note of the end of the process. */
SAPWOOD_HIDDEN void sapwood_control_start(int leaf_socket, bool contended);
/* In a forked child, and in a rank that is not observed: nothing that it does is the rank's. */
SAPWOOD_HIDDEN void sapwood_control_leave(void);
/* The phase that the settings ask for. */
SAPWOOD_HIDDEN int sapwood_control_phase(void);
/* Takes over what is pending. */
SAPWOOD_HIDDEN void sapwood_control_take(void);
/* The program has called MPI_Pcontrol. */
SAPWOOD_HIDDEN void sapwood_control_level(int level);
/* In the phase SELECTIVE, before a call is counted: whether it is, and of its time and
 * bytes what is. `calls` becomes 1 or 0. */
SAPWOOD_HIDDEN bool sapwood_select(uint32_t function, uint64_t *calls, uint64_t *ns, uint64_t *bytes);
/* In that phase, after it was counted: every n-th call of one function is a mark. */
SAPWOOD_HIDDEN void sapwood_call_ended(uint32_t function);
/* The rank reaches a mark: takes a snapshot of the slots if a leaf has copied those before, and never waits. Marks are
 * numbered whether or not a leaf is there: one that attaches later begins with the next. */
SAPWOOD_HIDDEN void sapwood_mark(void);
/* At the entry of MPI_Abort. */
SAPWOOD_HIDDEN void sapwood_note_abort(int code);

static SAPWOOD_HOT bool sapwood_control_is_pending(void)
{
    return __builtin_expect(atomic_load_explicit(&sapwood_control.pending, memory_order_relaxed) != 0, 0);
}

#endif
