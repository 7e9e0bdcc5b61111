/* The event file: what one rank has done lately, call by call, in memory that it shares.
 *
 * Like the table (table.h) it is one memfd of fixed, sealed size, which the rank writes and a
 * leaf of the tree reads whenever it likes, also after the rank has been killed; or a file of a
 * folder (events_folder.h), which is read after the leaf has gone, too. Each thread
 * that calls MPI writes one ring of records, of which the oldest are overwritten. There is no
 * lock, no atomic read-modify-write, no allocation and no system call in a recorded call; under
 * MPI_THREAD_MULTIPLE messages and those that start and complete non-blocking or persistent collectives take a lock.
 *
 * All numbers little-endian, all at their natural alignment. Offsets in bytes.
 *
 *   header, 256 bytes
 *     0  magic            8 bytes  "SWEVENTS"
 *     8  version          u32      1
 *    12  header_bytes     u32      256: where the first space lies
 *    16  world_rank       u32
 *    20  world_size       u32
 *    24  pid              u32
 *    28  flags            u32      bit 0 times are of the time-stamp counter (else CLOCK_MONOTONIC)
 *    32  file_bytes       u64
 *    40  clock_ticks      u64      a moment by the clock of the records, and
 *    48  clock_ns         u64      the same moment by CLOCK_MONOTONIC
 *    56  clock_scale      u64      nanoseconds per tick, in 1 / 2^32
 *    64  state            u32      SAPWOOD_EVENTS_ bits
 *    68  spaces_capacity  u32
 *    72  spaces_used      u32      stored with release after the space is in place
 *    76  rings_capacity   u32
 *    80  ring_records     u32      of each ring, a power of two
 *    84  rings_offset     u32      from the start of the file; they come last, before those of hops
 *    88  without_ring     u64      records of threads that have no ring
 *    96  without_space    u64      calls on communicators that found no space
 *   104  unsure           u64      receives of which it is not known which message they took
 *   112  paused_ns        u64      CLOCK_MONOTONIC when recording was last switched off; 0 while it is on,
 *                                  and before it was on first
 *   120  without_hop_ring u64      hops of threads that have no ring of hops
 *   128  hop_rings        u32      rings of hops (hops.h), behind the others and of as many records
 *   132  reserved         124 bytes 0
 *
 *   space, 64 bytes: a communicator since it was made, or first seen, a window, or the request of a
 *   persistent collective
 *     0  handle           u64      0 once it is freed; of such a request, bit 63, which no handle has,
 *                                  and a number
 *     8  identity         u64      the same in all processes of the communicator
 *    16  sequence         u32      collectives on it that have returned, recorded or not, but for persistent
 *                                  ones; of the request of one, its starts
 *    20  size             u32      processes of the local group
 *    24  rank             u32      this process in it
 *    28  flags            u32      bit 0 intercommunicator, bit 1 window, bit 2 a collective has failed
 *                                  here, or a start, or it was made behind a call that failed: the
 *                                  numbers of the processes may differ; bit 3 request of a persistent
 *                                  collective
 *    32  pending          u32      receives from any source or tag that have not completed
 *    36  posted           u32      receives posted on it
 *    40  last             u64      the last of these collectives: function id, u32, and root, i32
 *    48  held             u32      of a window, the rank whose part this process has locked, and 1; all
 *                                  bits set for all parts; 0 for none
 *    52  name             u32      where its name stands in the table's names, plus 1; 0 for none. A
 *                                  request has the name that its communicator had when it was made
 *    56  since            u64      ticks at which the place was free; 0 if no other one had it before; all
 *                                  bits set while the space is changed
 *
 *   ring: 64 bytes, then its records
 *     0  head             u64      records written so far; stored with release after each.
 *                                  Record n is in place n % ring_records; while record n is
 *                                  written head is n
 *     8  reserved         56 bytes 0
 *
 *   record, 32 bytes, as four words of 64 bits
 *     0  time             u64      ticks at the begin of the call
 *     8  operation        u16      function id; of the start of a persistent collective, that of the function
 *                                  that has made its request
 *    10  span             48 bits  ticks until its return
 *    16  communicator     u16      number of its space
 *    18  kind             u8       SAPWOOD_EVENT_
 *    19  members          u8       receives that the same call has completed, 1 to 255, 0 of one of which
 *                                  it is not known which message it took; of a send the number of
 *                                  bits of its bytes, and 1, or 0 where they are not known
 *    20  sequence         u32      of a collective in its space, from 1, 0 where it is not known; of a
 *                                  message in its channel, from 1
 *    24  peer             i32      root, or the message's other side, in the communicator
 *    28  tag              i32      of the message. Of a collective that needs the same amount of data of all
 *                                  processes, the bytes of this one, and 1, as u32; 0 of another one,
 *                                  and where they are no u32
 *
 *   The place of a freed communicator is used again, only when no ring holds a record that names it. A
 *   reader that has copied records, and then looks at their spaces, may find one changed: records from
 *   before `since` are of a former communicator. A space was copied whole if `since` was the same
 *   before and after.
 *
 *   A record of kind CLOCK has CLOCK_MONOTONIC nanoseconds, u64, in the place of operation and span.
 *
 * The identity of a communicator is made of the communicator on which it was made, of the number of
 * that call among all calls on it that make communicators, and of the world's ranks of its group, in
 * order: the members of a communicator make these calls in one order, whatever their threads do
 * elsewhere. Of MPI_Comm_create_group and MPI_Intercomm_create, which not all members call, the tag
 * and how often there was the same stand in the place of the number. Of one whose making was not
 * seen, the group and how many of these were seen before. The identity of a window is made of its
 * communicator's and of how many windows were made on this before. That of the request of a persistent
 * collective likewise: the members of a communicator make these requests in one order, and may start
 * them in any, before or behind other collectives on it. So each request counts its starts for itself.
 *
 * The k-th message of a channel, which is communicator, source, destination and tag, is the k-th
 * that is sent and the k-th that is received in it, because MPI's messages of one channel do not
 * overtake one another. They may where several threads use one channel: from then on none of its
 * messages is recorded.
 */
#ifndef SAPWOOD_EVENTS_H
#define SAPWOOD_EVENTS_H

#include "observe.h"
#include "ring.h"
#include "sizes.h"
#include "spaces.h"

#define SAPWOOD_EVENTS_MAGIC "SWEVENTS"
#define SAPWOOD_EVENTS_VERSION 1u

enum {
    /* Records are written. */
    SAPWOOD_EVENTS_RECORDING = 1,
    /* Messages were counted from the start, so that their numbers mean something. */
    SAPWOOD_EVENTS_MESSAGES = 2,
    /* Collectives were called while the rank was paused: their numbers mean nothing. */
    SAPWOOD_EVENTS_ORDER_LOST = 4,
    /* The same of messages: a channel more than fits, a call that cannot be followed. */
    SAPWOOD_EVENTS_MESSAGES_LOST = 8,
    /* The rank is in MPI_Finalize, or behind it: the numbers of its collectives are the last ones. */
    SAPWOOD_EVENTS_FINALIZED = 16,

    /* More than a ring has records by default, so that a thread which makes one communicator after the
     * other, and records a call on each, finds one that is named no more. */
    SAPWOOD_SPACES = 65534,
    /* As many as threads have activities. */
    SAPWOOD_RINGS = 16,
    SAPWOOD_RING_BYTES_MIN = 4096,
    SAPWOOD_RING_BYTES = 1 << 20,
    SAPWOOD_RING_BYTES_MAX = 2 << 20,
    SAPWOOD_CLOCK_EVERY = 1024,

    SAPWOOD_SPACE_BETWEEN = 1,
    SAPWOOD_SPACE_WINDOW = 2,
    SAPWOOD_SPACE_NUMBER_LOST = 4,
    SAPWOOD_SPACE_REQUEST = 8,

    SAPWOOD_EVENT_COLLECTIVE = 1,
    SAPWOOD_EVENT_COLLECTIVE_STARTED = 2,
    SAPWOOD_EVENT_COLLECTIVE_COMPLETED = 3,
    SAPWOOD_EVENT_SEND = 4,
    SAPWOOD_EVENT_SEND_STARTED = 5,
    SAPWOOD_EVENT_RECEIVE = 6,
    SAPWOOD_EVENT_RECEIVE_COMPLETED = 7,
    SAPWOOD_EVENT_CLOCK = 8,
};

/* In the place of the bytes of a collective: the processes need not give as many. */
#define SAPWOOD_NO_AMOUNT UINT64_MAX

struct sapwood_events_header {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes;
    uint32_t world_rank;
    uint32_t world_size;
    uint32_t pid;
    uint32_t flags;
    uint64_t file_bytes;
    uint64_t clock_ticks;
    uint64_t clock_ns;
    uint64_t clock_scale;
    _Atomic uint32_t state;
    uint32_t spaces_capacity;
    _Atomic uint32_t spaces_used;
    uint32_t rings_capacity;
    uint32_t ring_records;
    uint32_t rings_offset;
    _Atomic uint64_t without_ring;
    _Atomic uint64_t without_space;
    _Atomic uint64_t unsure;
    _Atomic uint64_t paused_ns;
    _Atomic uint64_t without_hop_ring;
    uint32_t hop_rings;
    uint32_t reserved_word;
    uint64_t reserved[15];
};

struct sapwood_space {
    _Atomic uint64_t handle;
    uint64_t identity;
    _Atomic uint32_t sequence;
    uint32_t size;
    uint32_t rank;
    _Atomic uint32_t flags;
    _Atomic uint32_t pending;
    _Atomic uint32_t posted;
    _Atomic uint64_t last;
    _Atomic uint32_t held;
    _Atomic uint32_t name;
    _Atomic uint64_t since;
};

struct sapwood_events {
    struct sapwood_events_header header;
    struct sapwood_space spaces[SAPWOOD_SPACES];
};

static_assert(sizeof(struct sapwood_events_header) == 256, "header bytes");
static_assert(offsetof(struct sapwood_events_header, state) == 64, "state");
static_assert(offsetof(struct sapwood_events_header, unsure) == 104, "unsure");
static_assert(offsetof(struct sapwood_events_header, paused_ns) == 112, "paused_ns");
static_assert(offsetof(struct sapwood_events_header, without_hop_ring) == 120, "without_hop_ring");
static_assert(sizeof(struct sapwood_space) == 64, "space bytes");
static_assert(SAPWOOD_SPACES < UINT16_MAX, "the number of a space fits a record");

/* State bits, RECORDING and MESSAGES, as a wrapped call looks at them; 0 is off. */
extern SAPWOOD_HIDDEN _Atomic uint32_t sapwood_recording;
/* NULL where there is no memory for it: then nothing is recorded. */
extern SAPWOOD_HIDDEN struct sapwood_events *sapwood_events;

/* Makes the file, which stays open under its name, and takes over SAPWOOD_MPI_WAITS. The table is
 * filled; it goes to the folder of events if there is one. */
SAPWOOD_HIDDEN void sapwood_events_make(void);
/* In a forked child. */
SAPWOOD_HIDDEN void sapwood_events_leave(void);
/* The descriptor of the file; -1 none. */
SAPWOOD_HIDDEN int sapwood_events_fd(void);
/* Switches recording. */
SAPWOOD_HIDDEN void sapwood_events_switch(bool on);
/* The program has no calls recorded while it holds this, however recording is switched. */
SAPWOOD_HIDDEN void sapwood_events_hold(bool held);
/* Whether it was asked for at the start, by SAPWOOD_MPI_WAITS or a folder. */
SAPWOOD_HIDDEN bool sapwood_events_are_asked(void);
/* The low bits of how many records a ring has had. */
SAPWOOD_HIDDEN uint32_t sapwood_ring_head(uint32_t ring);
/* From here on calls go past the wrappers. */
SAPWOOD_HIDDEN void sapwood_events_lose_order(void);
SAPWOOD_HIDDEN void sapwood_events_lose_messages(void);
/* No collective follows. */
SAPWOOD_HIDDEN void sapwood_events_finalize(void);
uint64_t sapwood_events_bytes(void);

/* Writes a record, of words as they are drawn above without the number of the space. */
SAPWOOD_HIDDEN void sapwood_record_words(const struct sapwood_space *space, uint64_t begin, uint64_t timing,
                                         uint64_t what, uint64_t whom);

struct sapwood_event_of_call {
    uint64_t begin;
    uint64_t ticks;
    const struct sapwood_space *space;
    uint32_t function;
    uint32_t kind;
    uint32_t members;
    uint32_t sequence;
    int32_t peer;
    int32_t tag;
};

static SAPWOOD_HOT void sapwood_record(struct sapwood_event_of_call event)
{
    sapwood_record_words(event.space, event.begin, event.ticks << 16 | event.function,
                         (uint64_t)event.kind << 16 | (uint64_t)event.members << 24 | (uint64_t)event.sequence << 32,
                         (uint32_t)event.peer | (uint64_t)(uint32_t)event.tag << 32);
}

static SAPWOOD_HOT struct sapwood_space *sapwood_space_of(MPI_Comm comm)
{
    uint64_t handle = SAPWOOD_HANDLE(comm);
    struct sapwood_space *space =
        atomic_load_explicit(&sapwood_space_at[sapwood_cache_place(handle)], memory_order_relaxed);
    bool is_it = atomic_load_explicit(&space->handle, memory_order_relaxed) == handle;
    return __builtin_expect(is_it, 1) ? space : sapwood_space_found(comm);
}

static SAPWOOD_HOT bool sapwood_is_recording(void)
{
    return __builtin_expect(atomic_load_explicit(&sapwood_recording, memory_order_relaxed) != 0, 0);
}

/* Bytes of data of a call that has only begun: of its type MPI is asked nothing, since it may be none. Not known
 * until a call with this type has succeeded, except of basic types, and not while another one has its place. */
static SAPWOOD_HOT uint64_t sapwood_known_bytes(int64_t count, MPI_Datatype type)
{
    uint64_t handle = SAPWOOD_HANDLE(type);
    uint64_t word = atomic_load_explicit(&sapwood_sizes[sapwood_cache_place(handle)], memory_order_relaxed);
    bool is_known = word >> 16 == handle && handle != 0 && count >= 0;
    if (__builtin_expect(is_known, 1))
        return (uint64_t)count * (word & 0xffff);
    uint64_t size = count >= 0 ? sapwood_basic_size(handle) : 0;
    return size == 0 ? SAPWOOD_NO_AMOUNT : (uint64_t)count * size;
}

/* Processes of an intra-communicator on which a call has only begun: MPI is not asked of it either, since it may be
 * none. 0 of another one, and where it is not known. Another communicator may have its place in the cache. */
static SAPWOOD_HOT uint32_t sapwood_known_size(MPI_Comm comm)
{
    uint64_t handle = SAPWOOD_HANDLE(comm);
    struct sapwood_space *space =
        atomic_load_explicit(&sapwood_space_at[sapwood_cache_place(handle)], memory_order_relaxed);
    /* Where a communicator was freed, the handle is 0, which may be given for one. */
    bool is_it = handle != 0 && atomic_load_explicit(&space->handle, memory_order_relaxed) == handle;
    if (__builtin_expect(!is_it, 0))
        space = sapwood_space_known(comm);
    uint32_t flags = atomic_load_explicit(&space->flags, memory_order_relaxed);
    return (flags & (SAPWOOD_SPACE_BETWEEN | SAPWOOD_SPACE_WINDOW)) == 0 ? space->size : 0;
}

/* Bytes of a block of as many for each process of the communicator. */
static SAPWOOD_HOT uint64_t sapwood_known_blocks(uint64_t bytes, MPI_Comm comm)
{
    uint32_t size = sapwood_known_size(comm);
    return size == 0 || bytes == SAPWOOD_NO_AMOUNT ? SAPWOOD_NO_AMOUNT : bytes * size;
}

/* The sum of counts, one for each process of the communicator; negative where it is not known. `_large` for the _c
 * functions. */
static inline int64_t sapwood_known_sum(const int *counts, MPI_Comm comm)
{
    uint32_t size = counts == NULL ? 0 : sapwood_known_size(comm);
    return size == 0 ? -1 : sapwood_sum(counts, (int)size);
}

static inline int64_t sapwood_known_sum_large(const MPI_Count *counts, MPI_Comm comm)
{
    uint32_t size = counts == NULL ? 0 : sapwood_known_size(comm);
    return size == 0 ? -1 : sapwood_sum_large(counts, (int)size);
}

/* The bytes of a collective in the place of its tag. */
static SAPWOOD_HOT int32_t sapwood_amount(uint64_t bytes)
{
    return bytes < UINT32_MAX ? (int32_t)(uint32_t)(bytes + 1) : 0;
}

/* A collective has returned: it is counted in its communicator, whether or not it is recorded.
 * Only one thread at a time may be in a collective of a communicator. Its number; a record
 * of it, and what is made of one, has 0 where that is lost. */
static SAPWOOD_HOT uint32_t sapwood_collective(struct sapwood_activity *activity, uint32_t function, uint32_t kind,
                                               MPI_Comm comm, int root, uint64_t bytes, uint64_t begin, uint64_t ticks)
{
    struct sapwood_space *space = sapwood_space_of(comm);
    uint32_t sequence = atomic_load_explicit(&space->sequence, memory_order_relaxed) + 1;
    /* What this call gave is not told of the next number: a process may be killed before it leaves the call. */
    SAPWOOD_TELL(activity->tag, 0);
    /* A reader that sees the number sees what it stands for, or what comes after it. */
    atomic_store_explicit(&space->last, (uint64_t)(uint32_t)root << 32 | function, memory_order_relaxed);
    atomic_store_explicit(&space->sequence, sequence, memory_order_release);
    if (!sapwood_is_recording())
        return sequence;
    if (__builtin_expect(atomic_load_explicit(&space->flags, memory_order_relaxed) & SAPWOOD_SPACE_NUMBER_LOST, 0))
        sequence = 0;
    sapwood_record((struct sapwood_event_of_call){.begin = begin, .ticks = ticks, .space = space,
                                                  .function = function, .kind = kind, .members = 1,
                                                  .sequence = sequence, .peer = root,
                                                  .tag = sapwood_amount(bytes)});
    return sequence;
}

#endif
