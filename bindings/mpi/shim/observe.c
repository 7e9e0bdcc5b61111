/* The slots: finding, taking and adding to them; see observe.h. */
#include "observe.h"

#include <pthread.h>
#include <string.h>

#include "control.h"
#include "functions.h"
#include "sizes_histogram.h"

_Atomic int sapwood_phase = SAPWOOD_UNTRIED;

/* Size classes of communicators come first; that of calls without one, 255, falls behind them. */
enum { COLUMNS = 64 };
static_assert(SAPWOOD_CLASS_NONE % COLUMNS >= 32, "a column of its own");

/* Slot number plus one by function and size class; 0 is none yet. Untouched rows
 * cost no memory. */
static _Atomic uint16_t slot_of[SAPWOOD_FUNCTION_IDS][COLUMNS];
static_assert(SAPWOOD_SLOTS < UINT16_MAX, "slot numbers fit");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void sapwood_table_lock(void)
{
    pthread_mutex_lock(&lock);
}

void sapwood_table_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

struct sapwood_slot *sapwood_slot_take(uint64_t key)
{
    struct sapwood_header *header = &sapwood_table->header;
    uint32_t used = atomic_load_explicit(&header->slots_used, memory_order_relaxed);
    if (used == SAPWOOD_SLOTS)
        return NULL;
    atomic_store_explicit(&sapwood_table->slots[used].key, key, memory_order_relaxed);
    atomic_store_explicit(&header->slots_used, used + 1, memory_order_release);
    return &sapwood_table->slots[used];
}

int64_t sapwood_name_stored(const char *name, size_t length)
{
    struct sapwood_header *header = &sapwood_table->header;
    uint32_t used = atomic_load_explicit(&header->names_used, memory_order_relaxed);
    if (length >= SAPWOOD_NAMES_BYTES - used)
        return -1;
    memcpy(sapwood_table->names + used, name, length);
    sapwood_table->names[used + length] = '\0';
    atomic_store_explicit(&header->names_used, used + (uint32_t)length + 1, memory_order_release);
    return used;
}

static SAPWOOD_HOT _Atomic uint16_t *place_of(uint32_t function, unsigned class)
{
    return &slot_of[function][class % COLUMNS];
}

/* NULL where there is none yet. */
static SAPWOOD_HOT struct sapwood_slot *slot_found(uint32_t function, unsigned class)
{
    uint16_t number = atomic_load_explicit(place_of(function, class), memory_order_acquire);
    return __builtin_expect(number == 0, 0) ? NULL : &sapwood_table->slots[number - 1];
}

/* The slot, made if need be; NULL when the table is full. */
static __attribute__((noinline)) struct sapwood_slot *slot_made(uint32_t function, unsigned class, bool sized)
{
    sapwood_table_lock();
    struct sapwood_slot *slot = slot_found(function, class);
    if (slot == NULL && (slot = sapwood_slot_take((uint64_t)function << 8 | class)) != NULL) {
        if (sized)
            sapwood_histogram_take(slot);
        atomic_store_explicit(place_of(function, class), (uint16_t)(slot - sapwood_table->slots + 1),
                              memory_order_release);
    }
    sapwood_table_unlock();
    return slot;
}

/* What a call has moved, and how that is counted by size. POSTED is what moves bytes later. */
struct transfer {
    uint64_t sent;
    uint64_t received;
    enum { UNSIZED, POSTED, SENT, RECEIVED, EXCHANGED } kind;
    bool is_left_out; /* it is not counted by size */
};

static SAPWOOD_HOT void add_sizes(struct sapwood_slot *slot, struct transfer moved, bool contended)
{
    if (moved.is_left_out)
        return;
    if (moved.kind == SENT || moved.kind == EXCHANGED)
        sapwood_histogram_add(slot, moved.sent, contended);
    if (moved.kind == RECEIVED || moved.kind == EXCHANGED)
        sapwood_histogram_add(slot, moved.received, contended);
}

static SAPWOOD_HOT void add(struct sapwood_slot *slot, uint64_t calls, uint64_t ns, struct transfer moved,
                            bool contended)
{
    sapwood_add(&slot->count, calls, contended);
    sapwood_add(&slot->time_ns, ns, contended);
    if (moved.kind >= SENT)
        sapwood_add(&slot->bytes, moved.sent + moved.received, contended);
    if (moved.kind >= RECEIVED)
        sapwood_add(&slot->received, moved.received, contended);
    add_sizes(slot, moved, contended);
}

static SAPWOOD_HOT void add_call(uint32_t function, unsigned class, uint64_t calls, uint64_t ns,
                                 struct transfer moved, bool contended)
{
    struct sapwood_slot *slot = slot_found(function, class);
    if (slot == NULL && (slot = slot_made(function, class, moved.kind != UNSIZED)) == NULL)
        sapwood_add(&sapwood_table->header.dropped, 1, true);
    else
        add(slot, calls, ns, moved, contended);
}

/* What the settings leave of a call or of a request's bytes; whether there is anything. */
static bool select_parts(uint32_t function, uint64_t *calls, uint64_t *ns, struct transfer *moved)
{
    uint64_t bytes = 1, counted = 1;
    if (!sapwood_select(function, &counted, ns, &bytes))
        return false;
    if (counted == 0) {
        *calls = 0;
        moved->is_left_out = true;
    }
    if (bytes == 0)
        moved->sent = moved->received = 0;
    return true;
}

/* A call that has no slot yet, or where several threads call MPI, nothing is counted, settings leave something out or
 * calls are marks. The parts of a transfer go apart and in registers from here to there, each time as the last that is
 * done: so those that need no stack take none. */
static __attribute__((noinline)) void count_slowly(uint32_t function, unsigned class, uint64_t ns, uint64_t sent,
                                                   uint64_t received, unsigned kind)
{
    int phase = sapwood_phase_now();
    if (phase < SAPWOOD_COUNTING)
        return;
    struct transfer moved = {.sent = sent, .received = received, .kind = kind};
    uint64_t calls = 1;
    if (phase < SAPWOOD_SELECTIVE || select_parts(function, &calls, &ns, &moved))
        add_call(function, class, calls, ns, moved, true);
    if (phase == SAPWOOD_SELECTIVE)
        sapwood_call_ended(function);
}

/* A call of one of several threads: it leaves before it is counted. */
static __attribute__((noinline)) void end_beside(uint32_t function, unsigned class, uint64_t ticks, uint64_t sent,
                                                 uint64_t received, unsigned kind)
{
    sapwood_leave_threads(sapwood_thread.activity, ticks);
    sapwood_thread.is_inside = false;
    count_slowly(function, class, sapwood_ns(ticks), sent, received, kind);
}

static SAPWOOD_HOT void end_alone(struct sapwood_activity *activity, uint64_t ticks)
{
    sapwood_stop(activity, ticks);
    sapwood_thread.is_inside = false;
}

/* A call that is not counted at once by the only thread there may be. */
static __attribute__((noinline)) void end_slowly(uint32_t function, unsigned class, uint64_t ticks, uint64_t sent,
                                                 uint64_t received, unsigned kind)
{
    struct transfer moved = {.sent = sent, .received = received, .kind = kind};
    struct sapwood_slot *slot = sapwood_phase_now() == SAPWOOD_CONTENDED ? slot_found(function, class) : NULL;
    if (slot != NULL) {
        end_alone(sapwood_thread.activity, ticks);
        add(slot, 1, sapwood_ns(ticks), moved, true);
    } else if (atomic_load_explicit(&sapwood_are_several, memory_order_acquire)) {
        end_beside(function, class, ticks, sent, received, kind);
    } else {
        end_alone(sapwood_thread.activity, ticks);
        count_slowly(function, class, sapwood_ns(ticks), sent, received, kind);
    }
}

static SAPWOOD_HOT void end(struct sapwood_activity *activity, uint32_t function, unsigned class, uint64_t ticks,
                            struct transfer moved)
{
    struct sapwood_slot *slot = sapwood_phase_now() == SAPWOOD_COUNTING ? slot_found(function, class) : NULL;
    if (__builtin_expect(slot == NULL, 0)) {
        end_slowly(function, class, ticks, moved.sent, moved.received, (unsigned)moved.kind);
        return;
    }
    uint64_t ns = sapwood_ns(ticks);
    end_alone(activity, ticks);
    add(slot, 1, ns, moved, false);
}

void sapwood_end(struct sapwood_activity *activity, uint32_t function, unsigned class, uint64_t ticks)
{
    end(activity, function, class, ticks, (struct transfer){.kind = UNSIZED});
}

void sapwood_end_sized(struct sapwood_activity *activity, uint32_t function, unsigned class, uint64_t ticks,
                       uint64_t bytes)
{
    end(activity, function, class, ticks, (struct transfer){.sent = bytes, .kind = SENT});
}

void sapwood_end_received(struct sapwood_activity *activity, uint32_t function, unsigned class, uint64_t ticks,
                          uint64_t bytes)
{
    end(activity, function, class, ticks, (struct transfer){.received = bytes, .kind = RECEIVED});
}

void sapwood_end_exchanged(struct sapwood_activity *activity, uint32_t function, unsigned class, uint64_t ticks,
                           uint64_t sent, uint64_t received)
{
    end(activity, function, class, ticks, (struct transfer){.sent = sent, .received = received, .kind = EXCHANGED});
}

void sapwood_end_posted(struct sapwood_activity *activity, uint32_t function, unsigned class, uint64_t ticks)
{
    end(activity, function, class, ticks, (struct transfer){.kind = POSTED});
}

static void add_later(uint32_t function, unsigned class, struct transfer moved)
{
    int phase = atomic_load_explicit(&sapwood_phase, memory_order_relaxed);
    uint64_t calls = 0, ns = 0;
    if (phase >= SAPWOOD_COUNTING && (phase < SAPWOOD_SELECTIVE || select_parts(function, &calls, &ns, &moved)))
        add_call(function, class, 0, 0, moved, phase != SAPWOOD_COUNTING);
}

void sapwood_add_sent(uint32_t function, unsigned class, uint64_t bytes)
{
    add_later(function, class, (struct transfer){.sent = bytes, .kind = SENT});
}

void sapwood_add_received(uint32_t function, unsigned class, uint64_t bytes)
{
    add_later(function, class, (struct transfer){.received = bytes, .kind = RECEIVED});
}

void sapwood_end_ns(uint32_t function, unsigned class, uint64_t ns)
{
    sapwood_thread.is_inside = false;
    count_slowly(function, class, ns, 0, 0, UNSIZED);
}

void sapwood_add_time(uint32_t function, uint64_t ns)
{
    struct sapwood_slot *slot = slot_found(function, SAPWOOD_CLASS_NONE);
    if (slot != NULL)
        sapwood_add(&slot->time_ns, ns, true);
}
