/* The slots: finding, taking and adding to them; see observe.h. */
#include "observe.h"

#include <pthread.h>
#include <string.h>

#include "functions.h"

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
static __attribute__((noinline)) uint16_t slot_made(uint32_t function, unsigned class, unsigned column)
{
    sapwood_table_lock();
    uint16_t number = atomic_load_explicit(&slot_of[function][column], memory_order_relaxed);
    if (number == 0) {
        struct sapwood_slot *slot = sapwood_slot_take((uint64_t)function << 8 | class);
        if (slot != NULL) {
            number = (uint16_t)(slot - sapwood_table->slots + 1);
            atomic_store_explicit(&slot_of[function][column], number, memory_order_release);
        }
    }
    sapwood_table_unlock();
    return number;
}

static inline __attribute__((always_inline)) void count(uint32_t function, unsigned class, uint64_t ns, uint64_t bytes)
{
    int phase = atomic_load_explicit(&sapwood_phase, memory_order_relaxed);
    sapwood_inside = false;
    if (__builtin_expect(phase < SAPWOOD_COUNTING, 0))
        return;
    unsigned column = class < COLUMN_NONE ? class : COLUMN_NONE;
    uint16_t number = atomic_load_explicit(&slot_of[function][column], memory_order_acquire);
    if (__builtin_expect(number == 0, 0) && (number = slot_made(function, class, column)) == 0) {
        sapwood_add(&sapwood_table->header.dropped, 1, true);
        return;
    }
    bool contended = phase == SAPWOOD_CONTENDED;
    struct sapwood_slot *slot = &sapwood_table->slots[number - 1];
    sapwood_add(&slot->count, 1, contended);
    sapwood_add(&slot->time_ns, ns, contended);
    sapwood_add(&slot->bytes, bytes, contended);
}

void sapwood_end(uint32_t function, unsigned class, uint64_t ticks, uint64_t bytes)
{
    sapwood_leave(ticks);
    count(function, class, sapwood_ns(ticks), bytes);
}

void sapwood_end_ns(uint32_t function, unsigned class, uint64_t ns, uint64_t bytes)
{
    count(function, class, ns, bytes);
}
