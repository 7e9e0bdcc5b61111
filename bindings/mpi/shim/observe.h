/* What every wrapper does around its call: begin, call, end.
 *
 *     if (sapwood_passes()) return next(...);           where counting is paused
 *     if (!sapwood_begin(&begin)) return next(...);     forwarded, not counted
 *     activity = sapwood_enter(function, communicator, peer, tag, begin);
 *     result = next(...);
 *     ticks = sapwood_ticks() - begin;
 *     sapwood_end(activity, function, class, ticks);
 *
 * A thread that is inside a counted call counts nothing more until that call
 * ends: implementations call their own public functions, and Fortran bindings
 * call C ones, and neither may count twice. An error handler that leaves an MPI
 * call by longjmp leaves its thread inside: MPI gives no promise for that either.
 */
#ifndef SAPWOOD_OBSERVE_H
#define SAPWOOD_OBSERVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "activity.h"
#include "clock.h"
#include "control.h"
#include "table.h"
#include "visibility.h"

/* In the order in which a process goes through them; OFF can follow any. */
enum sapwood_phase {
    SAPWOOD_OFF = -1,     /* not observed, or no longer */
    SAPWOOD_UNTRIED = 0,  /* no MPI function was called yet */
    SAPWOOD_WAITING,      /* the MPI library is known, MPI is not initialised */
    SAPWOOD_PAUSED,       /* settings do not select this rank */
    SAPWOOD_COUNTING,     /* one thread calls MPI */
    SAPWOOD_CONTENDED,    /* the same, but MPI_THREAD_MULTIPLE: additions are atomic */
    SAPWOOD_THREADS,      /* several have called MPI: what they are in is added up, too */
    SAPWOOD_SELECTIVE,    /* settings leave something out, or calls are marks */
};

extern SAPWOOD_HIDDEN _Atomic int sapwood_phase;
extern SAPWOOD_HIDDEN struct sapwood_table *sapwood_table;

/* Moves on through the phases where that is due. Whether to count this call. */
SAPWOOD_HIDDEN bool sapwood_begin_slowly(void);

static SAPWOOD_HOT int sapwood_phase_now(void)
{
    return atomic_load_explicit(&sapwood_phase, memory_order_relaxed);
}

static SAPWOOD_HOT bool sapwood_is_counting(void)
{
    return sapwood_phase_now() >= SAPWOOD_COUNTING;
}

/* Whether all that is to be done for a call is to pass it on. */
static SAPWOOD_HOT bool sapwood_passes(void)
{
    return __builtin_expect(sapwood_phase_now() == SAPWOOD_PAUSED, 0) && !sapwood_control_is_pending();
}

/* Takes over pending settings. Whether to count this call by them. */
SAPWOOD_HIDDEN bool sapwood_take_settings(void);

static SAPWOOD_HOT bool sapwood_begin(uint64_t *begin)
{
    if (__builtin_expect(!sapwood_is_counting() || sapwood_thread.is_inside, 0) && !sapwood_begin_slowly())
        return false;
    if (sapwood_control_is_pending() && !sapwood_take_settings())
        return false;
    sapwood_thread.is_inside = true;
    *begin = sapwood_ticks();
    return true;
}

/* Adds one call to the slot of this function and class, and leaves the guard. */
SAPWOOD_HIDDEN void sapwood_end(struct sapwood_activity *activity, uint32_t function, unsigned class, uint64_t ticks);

/* The same for a call that moves bytes, which also counts by their number. */
SAPWOOD_HIDDEN void sapwood_end_sized(struct sapwood_activity *activity, uint32_t function, unsigned class,
                                      uint64_t ticks, uint64_t bytes);

/* The same for a call that has received a message, and for one that has sent one and received one. */
SAPWOOD_HIDDEN void sapwood_end_received(struct sapwood_activity *activity, uint32_t function, unsigned class,
                                         uint64_t ticks, uint64_t bytes);
SAPWOOD_HIDDEN void sapwood_end_exchanged(struct sapwood_activity *activity, uint32_t function, unsigned class,
                                          uint64_t ticks, uint64_t sent, uint64_t received);

/* The same for a call that makes a request whose bytes are counted later, by the two below. */
SAPWOOD_HIDDEN void sapwood_end_posted(struct sapwood_activity *activity, uint32_t function, unsigned class,
                                       uint64_t ticks);
SAPWOOD_HIDDEN void sapwood_add_sent(uint32_t function, unsigned class, uint64_t bytes);
SAPWOOD_HIDDEN void sapwood_add_received(uint32_t function, unsigned class, uint64_t bytes);

/* The same as the first for a span that was measured in nanoseconds, in which the thread was in no call. */
void sapwood_end_ns(uint32_t function, unsigned class, uint64_t ns);

/* Goes to another phase of those in which the table is open, while it is. */
SAPWOOD_HIDDEN void sapwood_phase_change(int phase);
/* sapwood_are_several has become true: leaves the phases of one thread. */
SAPWOOD_HIDDEN void sapwood_phase_leaves_one_thread(void);

/* Adds without atomic read-modify-write unless `contended`. */
static inline void sapwood_add(_Atomic uint64_t *word, uint64_t amount, bool contended)
{
    if (contended)
        atomic_fetch_add_explicit(word, amount, memory_order_relaxed);
    else
        atomic_store_explicit(word, atomic_load_explicit(word, memory_order_relaxed) + amount,
                              memory_order_relaxed);
}

/* Takes the next free slot for the key. NULL when the table is full. Callers
 * hold sapwood_table_lock. */
struct sapwood_slot *sapwood_slot_take(uint64_t key);
void sapwood_table_lock(void);
void sapwood_table_unlock(void);

/* Copies a name into the table. Its offset there, or -1 when it does not fit. Callers
 * hold the lock. */
int64_t sapwood_name_stored(const char *name, size_t length);

/* Makes the table's memory if it is not there yet, unfilled; NULL if it cannot. */
struct sapwood_table *sapwood_table_make(void);
/* Moves the table, whose header is filled, from memory to this file of its size, which is all zeros. The
 * descriptor is the table's from then on. Where that cannot be, the table stays. */
SAPWOOD_HIDDEN void sapwood_table_move(int fd);

/* Chooses the clock if that is still to be done, for a region before MPI_Init. */
void sapwood_clock_ready(void);

/* Around MPI_Init and MPI_Init_thread: prepares; then counts the call and starts
 * counting if it succeeded. `begin` is in CLOCK_MONOTONIC nanoseconds. */
bool sapwood_init_begins(uint64_t *begin);
void sapwood_init_ends(uint32_t function, uint64_t begin, bool succeeded);

/* Bytes of the table with what was asked for. */
uint64_t sapwood_table_bytes(void);

/* Says that a limit on the size of files refuses a file; `so` is the end of the line. One rank of
 * each host says it. */
void sapwood_say_too_large(const char *what, uint64_t bytes, const char *so);

/* Around MPI_Finalize: counts it and closes the table; then, if it was counted, adds its
 * time and writes the dump. */
bool sapwood_finalize_begins(uint32_t function, uint64_t *begin);
void sapwood_finalize_ends(uint32_t function, uint64_t begin);

/* Adds time to a call that was counted already. */
void sapwood_add_time(uint32_t function, uint64_t ns);

#endif
