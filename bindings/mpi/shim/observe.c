/* The slots: finding, taking and adding to them; see observe.h. */
#include "observe.h"

#include <pthread.h>
#include <string.h>

#include "control.h"
#include "functions.h"
#include "sizes_histogram.h"

_Atomic int sapwood_phase = SAPWOOD_UNTRIED;
_Thread_local bool sapwood_inside __attribute__((tls_model("initial-exec")));

/* Column of the communicator-less calls in `slot_of`. */
enum { COLUMN_NONE = 32, COLUMNS };

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

/* The slot's number plus one, made if need be; 0 when the table is full. */
static __attribute__((noinline)) uint16_t slot_made(uint32_t function, unsigned class, unsigned column, bool sized)
{
    sapwood_table_lock();
    uint16_t number = atomic_load_explicit(&slot_of[function][column], memory_order_relaxed);
    if (number == 0) {
        struct sapwood_slot *slot = sapwood_slot_take((uint64_t)function << 8 | class);
        if (slot != NULL) {
            if (sized)
                sapwood_histogram_take(slot);
            number = (uint16_t)(slot - sapwood_table->slots + 1);
            atomic_store_explicit(&slot_of[function][column], number, memory_order_release);
        }
    }
    sapwood_table_unlock();
    return number;
}

/* What a call has moved, and how that is counted by size. */
struct transfer {
    uint64_t sent;
    uint64_t received;
    enum { UNSIZED, SENT, RECEIVED, EXCHANGED } kind;
    bool is_left_out; /* it is not counted by size, or will be later */
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

static SAPWOOD_HOT void add_call(uint32_t function, unsigned class, uint64_t calls, uint64_t ns, struct transfer moved,
                                 bool contended)
{
    unsigned column = class < COLUMN_NONE ? class : COLUMN_NONE;
    uint16_t number = atomic_load_explicit(&slot_of[function][column], memory_order_acquire);
    if (__builtin_expect(number == 0, 0) &&
        (number = slot_made(function, class, column, moved.kind != UNSIZED)) == 0) {
        sapwood_add(&sapwood_table->header.dropped, 1, true);
        return;
    }
    struct sapwood_slot *slot = &sapwood_table->slots[number - 1];
    sapwood_add(&slot->count, calls, contended);
    sapwood_add(&slot->time_ns, ns, contended);
    sapwood_add(&slot->bytes, moved.sent + moved.received, contended);
    if (moved.kind == RECEIVED || moved.kind == EXCHANGED)
        sapwood_add(&slot->received, moved.received, contended);
    add_sizes(slot, moved, contended);
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

/* Where nothing is counted, or settings leave something out, or calls are marks. The parts of a transfer
 * go apart and in registers, so that calls that do not come here make no room for them. */
static __attribute__((noinline)) void count_selected(uint32_t function, unsigned class, uint64_t ns, uint64_t sent,
                                                     uint64_t received, unsigned how)
{
    if (atomic_load_explicit(&sapwood_phase, memory_order_relaxed) < SAPWOOD_COUNTING)
        return;
    struct transfer moved = {.sent = sent, .received = received, .kind = how >> 1, .is_left_out = how & 1};
    uint64_t calls = 1;
    if (select_parts(function, &calls, &ns, &moved))
        add_call(function, class, calls, ns, moved, true);
    sapwood_call_ended(function);
}

static SAPWOOD_HOT void count(uint32_t function, unsigned class, uint64_t ns, struct transfer moved)
{
    int phase = atomic_load_explicit(&sapwood_phase, memory_order_relaxed);
    sapwood_inside = false;
    /* One comparison, for those below and for the one above. */
    if (__builtin_expect((unsigned)(phase - SAPWOOD_COUNTING) > SAPWOOD_CONTENDED - SAPWOOD_COUNTING, 0))
        count_selected(function, class, ns, moved.sent, moved.received, (unsigned)moved.kind << 1 | moved.is_left_out);
    else
        add_call(function, class, 1, ns, moved, phase == SAPWOOD_CONTENDED);
}

static SAPWOOD_HOT void end(uint32_t function, unsigned class, uint64_t ticks, struct transfer moved)
{
    sapwood_leave(ticks);
    count(function, class, sapwood_ns(ticks), moved);
}

void sapwood_end(uint32_t function, unsigned class, uint64_t ticks, uint64_t bytes)
{
    end(function, class, ticks, (struct transfer){.sent = bytes, .kind = UNSIZED});
}

void sapwood_end_sized(uint32_t function, unsigned class, uint64_t ticks, uint64_t bytes)
{
    end(function, class, ticks, (struct transfer){.sent = bytes, .kind = SENT});
}

void sapwood_end_received(uint32_t function, unsigned class, uint64_t ticks, uint64_t bytes)
{
    end(function, class, ticks, (struct transfer){.received = bytes, .kind = RECEIVED});
}

void sapwood_end_exchanged(uint32_t function, unsigned class, uint64_t ticks, uint64_t sent, uint64_t received)
{
    end(function, class, ticks, (struct transfer){.sent = sent, .received = received, .kind = EXCHANGED});
}

void sapwood_end_posted(uint32_t function, unsigned class, uint64_t ticks)
{
    end(function, class, ticks, (struct transfer){.kind = RECEIVED, .is_left_out = true});
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

void sapwood_end_ns(uint32_t function, unsigned class, uint64_t ns, uint64_t bytes)
{
    count(function, class, ns, (struct transfer){.sent = bytes, .kind = UNSIZED});
}

void sapwood_add_time(uint32_t function, uint64_t ns)
{
    uint16_t number = atomic_load_explicit(&slot_of[function][COLUMN_NONE], memory_order_acquire);
    if (number > 0)
        sapwood_add(&sapwood_table->slots[number - 1].time_ns, ns, true);
}
