/* The profile table: what one rank has counted so far, in memory that it shares.
 *
 * The table is one memfd of fixed, sealed size. The rank writes, a leaf of the
 * tree reads whenever it likes; the dump file of a rank is the same bytes. There
 * is no lock: every word is stored whole (aligned, atomic), so a reader sees
 * each word either before or after an update. Words of one slot may belong to
 * neighbouring moments while the rank runs: count may already include a call
 * whose time and bytes follow. After `state` has left RUNNING nothing changes.
 *
 * All numbers little-endian, all at their natural alignment. Offsets in bytes.
 *
 *   header, 512 bytes
 *     0  magic            8 bytes  "SWPROFIL"
 *     8  version          u32      5
 *    12  header_bytes     u32      512: where the first slot lies
 *    16  world_rank       u32      rank in MPI_COMM_WORLD
 *    20  world_size       u32
 *    24  pid              u32
 *    28  abi              u32      1 Open MPI, 2 MPICH, 3 the MPI standard's
 *    32  state            u32      1 running, 2 finalized, 3 exited without MPI_Finalize
 *    36  flags            u32      bit 0 clock is the time-stamp counter (else CLOCK_MONOTONIC),
 *                                  bit 1 MPI_THREAD_MULTIPLE was granted
 *    40  started_ns       u64      CLOCK_MONOTONIC when counting began
 *    48  host             64 bytes UTF-8, padded with NUL, always at least one NUL
 *   112  program          64 bytes the same; file name without folder
 *   176  slot_capacity    u32
 *   180  slots_used       u32      release store after the slot's key is in place:
 *                                  slots [0, slots_used) have valid keys
 *   184  names_offset     u32      from the start of the table
 *   188  names_capacity   u32      bytes
 *   192  names_used       u32      bytes; stored with release before a slot refers to them
 *   196  activities_offset u32     from the start of the table
 *   200  dropped          u64      events that found no slot or no matching begin
 *   208  table_bytes      u64      size of the whole table
 *   216  activities_capacity u32
 *   220  communicators_capacity u32  they follow the activities
 *   224  clock_ticks      u64      a moment by the clock of the activities, and
 *   232  clock_ns         u64      the same moment by CLOCK_MONOTONIC
 *   240  clock_scale      u64      nanoseconds per tick, in 1 / 2^32
 *   248  comm_world       u64      handle of MPI_COMM_WORLD
 *   256  histograms_offset u32     from the start of the table
 *   260  histograms_capacity u32
 *   264  histograms_used  u32      rows [0, histograms_used) belong to a slot each
 *   268  tallies_offset   u32      from the start of the table
 *   272  tallies_capacity u32      0 unless some extra was asked for
 *   276  extras           u32      what is tallied: bit 0 call sites, bit 1 peers, bit 2 communicators
 *   280  tallies_dropped  u64      calls that found no tally
 *   288  taken_functions  u32      MPI functions that a tool in front of the shim takes
 *   292  is_spawned       u32      1 if MPI_Comm_spawn started the process
 *   296  started_cpu_ns   u64      processor time of the process when counting began
 *   304  usage            64 bytes what the process has used when counting ended, below;
 *                                  0 before
 *   368  untracked        u64      requests whose bytes are not known, and so not counted
 *   376  names_left_out   u64      communicators, windows and files that were named when names of others
 *                                  in use took all the room
 *   384  snapshots_offset u32      from the start of the table; they come last
 *   388  snapshots_capacity u32
 *   392  marks            u64      iteration marks that the rank has reached; release store
 *                                  after the snapshot of the last one
 *   400  marks_left_out   u64      marks without a snapshot: the leaf had not copied older ones,
 *                                  or there was none
 *   408  run              u64      of a table that is kept in a file: a number by which its launcher tells this
 *                                  run from others; 0 where it gives none
 *   416  kept_unix_ns     u64      of the same: when the file was made, since 1970; 0 of others
 *   424  together_ns      u64      of a rank of which several threads have called MPI: time in which all of these
 *                                  were in MPI, as far as calls have returned, and that before there were several
 *   432  several_since    u64      ticks when a second thread called MPI while the first one lived; 0 never
 *   440  joined           u64      ticks when one of these threads came or ended last: time in which all are in
 *                                  MPI is counted from here, or from where the last of them has entered
 *   448  threads_most     u64      the most of these threads at a time
 *   456  is_together      u32      1 once together_ns counts; before, the time of the slots is that of one thread
 *   460  pending_offset   u32      from the start of the table: a list for each activity; 0 of tables without
 *   464  reserved         48 bytes 0
 *
 *   slot, 64 bytes, slot i at header_bytes + 64 i
 *     0  key              u64
 *     8  count            u64      calls that returned (regions: times ended)
 *    16  time_ns          u64      inclusive time of these
 *    24  bytes            u64      by the rules in functions.table; 0 for regions
 *    32  histogram        u32      row of its sizes plus 1; 0 none
 *    36  reserved         4 bytes 0
 *    40  received         u64      of these bytes, those that came in point-to-point messages; the
 *                                  others of a point-to-point function were sent
 *    48  reserved         16 bytes 0
 *
 *   key of a function:  0 | function id << 8 | communicator size class
 *   key of a region:    bit 63 set | offset of its name in the name area
 *
 *   Communicator size class: ceil(log2(size of the local group)), so 0 is size 1,
 *   1 is 2, 2 is 3..4, 3 is 5..8; 255 for functions without a communicator and
 *   for calls that returned an error.
 *
 *   histogram, 256 bytes: transfers by their bytes: calls, and of point-to-point functions messages
 *     0  transfers        32 u64   of size class 0..31: 0 bytes, 1, 2, 3..4, 5..8, and so on by
 *                                  powers of two; the last one has all from 2^29 + 1 bytes on
 *
 *   tally, 64 bytes: calls of one function with one subject; a free one has key 0
 *     0  key              u64      kind << 56 | function id << 8 | communicator size class,
 *                                  stored with release when the other words are in place
 *     8  subject          u64      kind 1 call site: address after the call in its file, as linked
 *                                  kind 2 peer: its rank in MPI_COMM_WORLD (function and class 0)
 *                                  kind 3 communicator: a number of its own in this process
 *    16  count            u64
 *    24  time_ns          u64
 *    32  bytes            u64
 *    40  name             u32      offset in the name area plus 1; 0 none: the file of a call
 *                                  site, the name and ranks of a communicator
 *    44  reserved         4 bytes 0
 *    48  handle           u64      by which the shim finds it
 *    56  reserved         8 bytes 0
 *
 *   usage: cpu_user_ns, cpu_system_ns, resident_bytes_max, minor_faults, major_faults,
 *   voluntary_switches, involuntary_switches: u64 each, of the whole process by getrusage;
 *   8 bytes reserved.
 *
 *   name area: at names_offset, NUL-terminated UTF-8 strings one after another.
 *
 *   activity, 64 bytes: what one thread does now. The call is stored last at its
 *   begin, the time first at its end: a reader in between may take a call for a
 *   shorter one, never for a longer one.
 *     0  call             u64      function id; 0 outside of MPI
 *     8  since            u64      ticks when it entered or left that call
 *    16  communicator     u64      handle; 0 none
 *    24  peer             u32      rank as the program gave it; SAPWOOD_NO_NUMBER none
 *    28  tag              u32      the same; of a call that makes or starts a collective that needs the same amount
 *                                  of data of all processes, the bytes of this one, and 1, as u32, from its entry
 *                                  until it is counted in its communicator; 0 where they are not known
 *    32  region           u64      key of the innermost open region; 0 none
 *    40  thread           u32      thread id; 0 when no thread has this activity
 *    44  destination      i32      of a call that sends to one and receives from another, the rank to which it
 *                                  sends; of others any number
 *    48  request_since    u64      `since` of a call that waits for one request, of which the next number is
 *    56  request_number   u32      the number of its collective on the communicator; 0 for another request
 *    60  has_called       u32      1 once the thread has called MPI, MPI_Init included; 2 if others that lived had
 *                                  called it before; 0 while it has only opened regions
 *
 *   pending, 512 bytes, list i is of activity i: receives that were open when its thread entered a call that
 *   waits for several requests, or the persistent collective for whose request alone it waits or tests
 *     0  count            u32      of them that are here; 0 where it is a persistent collective
 *     4  others           u32      requests of the call beside these
 *     8  receives         31 of:   0 communicator u64 handle, 8 peer i32, 12 tag i32 as the program gave them.
 *                                  In their place, of a persistent collective: 0 function u32 id of that which has
 *                                  made its request, and 4 class u32, 8 name u32, 12 between u32 of its communicator,
 *                                  which may be freed, as that would have them below
 *   504  since            u64      `since` of that call, stored last, and 0 before the other words are written: a
 *                                  copy in the order of the words that begins when the thread has waited for a
 *                                  while, and whose `since` is that of the call, is whole. One that begins while
 *                                  the thread enters the call may have words of a list before
 *
 *   communicator, 32 bytes: one that a call has succeeded on
 *     0  handle           u64      0 none; of a window that is being freed, and a file that is being closed, another
 *                                  number, which the call is told with: MPI may give the handle to another one before
 *                                  the call returns
 *     8  class            u32      its size class
 *    12  name             u32      offset in the name area plus 1; 0 none
 *    16  between          u32      1 if it has two groups: a call's peer is of the other one
 *    20  reserved         4 bytes  0
 *    24  again            u64      the handle once more, and all ones while another one takes the place: a copy in the
 *                                  order of the words in which the two differ may be of both; 0 of tables in which no
 *                                  place is ever another one's
 *
 *   snapshot: the slots as they were at mark m, in snapshot m % snapshots_capacity
 *     0  mark             u64      m, from 1; 0 while it is written
 *     8  at_ns            u64      CLOCK_MONOTONIC
 *    16  slots_used       u32
 *    20  reserved         44 bytes 0
 *    64  counters         24 bytes for each slot: count, time_ns, bytes
 *
 * MPI_Finalize counts itself at its entry: 1 call. Then state becomes 2 and
 * counting stops; its time, its activity and the usage are the only words that
 * change after that, when it returns. Calls made inside another MPI call (an implementation that
 * uses its own public functions, a user's reduction operator) are not counted.
 */
#ifndef SAPWOOD_TABLE_H
#define SAPWOOD_TABLE_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define SAPWOOD_TABLE_MAGIC "SWPROFIL"
#define SAPWOOD_TABLE_VERSION 5u

enum {
    SAPWOOD_ABI_OPENMPI = 1,
    SAPWOOD_ABI_MPICH = 2,
    SAPWOOD_ABI_STANDARD = 3, /* of MPI 5.0, whichever library */

    SAPWOOD_STATE_RUNNING = 1,
    SAPWOOD_STATE_FINALIZED = 2,
    SAPWOOD_STATE_EXITED = 3,

    SAPWOOD_FLAG_CYCLE_CLOCK = 1,
    SAPWOOD_FLAG_THREAD_MULTIPLE = 2,

    SAPWOOD_LABEL_BYTES = 64,
    SAPWOOD_SLOTS = 2048,
    SAPWOOD_NAMES_BYTES = 32768,
    SAPWOOD_ACTIVITIES = 16,
    SAPWOOD_COMMUNICATORS = 64,
    SAPWOOD_PENDING = 31,
    SAPWOOD_SNAPSHOTS = 4,
    SAPWOOD_HISTOGRAMS = 512,
    SAPWOOD_HISTOGRAM_CLASSES = 32,
    SAPWOOD_TALLIES = 2048,

    SAPWOOD_EXTRA_CALL_SITES = 1,
    SAPWOOD_EXTRA_PEERS = 2,
    SAPWOOD_EXTRA_COMMUNICATORS = 4,

    SAPWOOD_TALLY_CALL_SITE = 1,
    SAPWOOD_TALLY_PEER = 2,
    SAPWOOD_TALLY_COMMUNICATOR = 3,

    SAPWOOD_CLASS_NONE = 255,
};

#define SAPWOOD_KEY_REGION (UINT64_C(1) << 63)
/* In the place of a peer or a tag of a call that has none. */
#define SAPWOOD_NO_NUMBER INT32_MIN

struct sapwood_usage {
    uint64_t cpu_user_ns;
    uint64_t cpu_system_ns;
    uint64_t resident_bytes_max;
    uint64_t minor_faults;
    uint64_t major_faults;
    uint64_t voluntary_switches;
    uint64_t involuntary_switches;
    uint64_t reserved;
};

struct sapwood_header {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes;
    uint32_t world_rank;
    uint32_t world_size;
    uint32_t pid;
    uint32_t abi;
    _Atomic uint32_t state;
    uint32_t flags;
    uint64_t started_ns;
    char host[SAPWOOD_LABEL_BYTES];
    char program[SAPWOOD_LABEL_BYTES];
    uint32_t slot_capacity;
    _Atomic uint32_t slots_used;
    uint32_t names_offset;
    uint32_t names_capacity;
    _Atomic uint32_t names_used;
    uint32_t activities_offset;
    _Atomic uint64_t dropped;
    uint64_t table_bytes;
    uint32_t activities_capacity;
    uint32_t communicators_capacity;
    uint64_t clock_ticks;
    uint64_t clock_ns;
    uint64_t clock_scale;
    uint64_t comm_world;
    uint32_t histograms_offset;
    uint32_t histograms_capacity;
    _Atomic uint32_t histograms_used;
    uint32_t tallies_offset;
    uint32_t tallies_capacity;
    uint32_t extras;
    _Atomic uint64_t tallies_dropped;
    uint32_t taken_functions;
    uint32_t is_spawned;
    uint64_t started_cpu_ns;
    struct sapwood_usage usage;
    _Atomic uint64_t untracked;
    _Atomic uint64_t names_left_out;
    uint32_t snapshots_offset;
    uint32_t snapshots_capacity;
    _Atomic uint64_t marks;
    _Atomic uint64_t marks_left_out;
    uint64_t run;
    uint64_t kept_unix_ns;
    _Atomic uint64_t together_ns;
    _Atomic uint64_t several_since;
    _Atomic uint64_t joined;
    _Atomic uint64_t threads_most;
    _Atomic uint32_t is_together;
    uint32_t pending_offset;
    unsigned char reserved[48];
};

struct sapwood_slot {
    _Atomic uint64_t key;
    _Atomic uint64_t count;
    _Atomic uint64_t time_ns;
    _Atomic uint64_t bytes;
    _Atomic uint32_t histogram;
    uint32_t reserved;
    _Atomic uint64_t received;
    uint64_t reserved_too[2];
};

struct sapwood_histogram {
    _Atomic uint64_t transfers[SAPWOOD_HISTOGRAM_CLASSES];
};

struct sapwood_tally {
    _Atomic uint64_t key;
    _Atomic uint64_t subject;
    _Atomic uint64_t count;
    _Atomic uint64_t time_ns;
    _Atomic uint64_t bytes;
    _Atomic uint32_t name;
    uint32_t reserved;
    _Atomic uint64_t handle;
    uint64_t reserved_too;
};

struct sapwood_activity {
    _Atomic uint64_t call;
    _Atomic uint64_t since;
    _Atomic uint64_t communicator;
    _Atomic int32_t peer;
    _Atomic int32_t tag;
    _Atomic uint64_t region;
    _Atomic uint32_t thread;
    _Atomic int32_t destination;
    _Atomic uint64_t request_since;
    _Atomic uint32_t request_number;
    _Atomic uint32_t has_called;
};

struct sapwood_open_receive {
    _Atomic uint64_t communicator;
    _Atomic int32_t peer;
    _Atomic int32_t tag;
};

struct sapwood_open_collective {
    _Atomic uint32_t function;
    _Atomic uint32_t class;
    _Atomic uint32_t name;
    _Atomic uint32_t between;
};

struct sapwood_pending {
    _Atomic uint32_t count;
    _Atomic uint32_t others;
    union {
        struct sapwood_open_receive receives[SAPWOOD_PENDING];
        struct sapwood_open_collective collective;
    };
    _Atomic uint64_t since;
};

struct sapwood_communicator {
    _Atomic uint64_t handle;
    _Atomic uint32_t class;
    _Atomic uint32_t name;
    _Atomic uint32_t between;
    uint32_t reserved;
    _Atomic uint64_t again;
};

struct sapwood_counters {
    _Atomic uint64_t count;
    _Atomic uint64_t time_ns;
    _Atomic uint64_t bytes;
};

struct sapwood_snapshot {
    _Atomic uint64_t mark;
    _Atomic uint64_t at_ns;
    _Atomic uint32_t slots_used;
    uint32_t reserved[11];
    struct sapwood_counters counters[SAPWOOD_SLOTS];
};

struct sapwood_table {
    struct sapwood_header header;
    struct sapwood_slot slots[SAPWOOD_SLOTS];
    char names[SAPWOOD_NAMES_BYTES];
    struct sapwood_activity activities[SAPWOOD_ACTIVITIES];
    struct sapwood_communicator communicators[SAPWOOD_COMMUNICATORS];
    struct sapwood_histogram histograms[SAPWOOD_HISTOGRAMS];
    struct sapwood_pending pending[SAPWOOD_ACTIVITIES];
    /* A table without extras ends before them. Snapshots follow in either. */
    struct sapwood_tally tallies[SAPWOOD_TALLIES];
};

/* The place of a mark's snapshot. */
static inline struct sapwood_snapshot *sapwood_snapshot_in(struct sapwood_table *table, uint64_t mark)
{
    return (struct sapwood_snapshot *)((char *)table + table->header.snapshots_offset) + mark % SAPWOOD_SNAPSHOTS;
}

static_assert(sizeof(struct sapwood_header) == 512, "header bytes");
static_assert(offsetof(struct sapwood_header, histograms_offset) == 256, "histograms");
static_assert(offsetof(struct sapwood_header, usage) == 304, "usage");
static_assert(offsetof(struct sapwood_header, untracked) == 368, "untracked");
static_assert(offsetof(struct sapwood_header, snapshots_offset) == 384, "snapshots offset");
static_assert(offsetof(struct sapwood_header, marks) == 392, "marks");
static_assert(offsetof(struct sapwood_header, run) == 408, "run");
static_assert(offsetof(struct sapwood_header, together_ns) == 424, "together");
static_assert(offsetof(struct sapwood_header, is_together) == 456, "is together");
static_assert(offsetof(struct sapwood_header, pending_offset) == 460, "pending offset");
static_assert(sizeof(struct sapwood_pending) == 512, "pending bytes");
static_assert(offsetof(struct sapwood_pending, since) == 504, "pending since");
static_assert(offsetof(struct sapwood_pending, collective) == 8, "pending collective");
static_assert(sizeof(struct sapwood_open_collective) == 16, "open collective bytes");
static_assert(sizeof(struct sapwood_snapshot) == 64 + 24 * SAPWOOD_SLOTS, "snapshot bytes");
static_assert(offsetof(struct sapwood_header, state) == 32, "state");
static_assert(offsetof(struct sapwood_header, host) == 48, "host");
static_assert(offsetof(struct sapwood_header, slot_capacity) == 176, "slot capacity");
static_assert(offsetof(struct sapwood_header, dropped) == 200, "dropped");
static_assert(offsetof(struct sapwood_header, table_bytes) == 208, "table bytes");
static_assert(offsetof(struct sapwood_header, clock_ticks) == 224, "clock ticks");
static_assert(sizeof(struct sapwood_slot) == 64, "slot bytes");
static_assert(offsetof(struct sapwood_slot, received) == 40, "received");
static_assert(sizeof(struct sapwood_activity) == 64, "activity bytes");
static_assert(sizeof(struct sapwood_communicator) == 32, "communicator bytes");
static_assert(offsetof(struct sapwood_communicator, again) == 24, "communicator again");
static_assert(sizeof(struct sapwood_histogram) == 256, "histogram bytes");
static_assert(sizeof(struct sapwood_tally) == 64, "tally bytes");
static_assert(offsetof(struct sapwood_table, activities) % 64 == 0, "an activity has a cache line of its own");
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the table is little-endian");

#endif
