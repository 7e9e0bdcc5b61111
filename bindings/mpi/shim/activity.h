/* What each thread does at this moment, for a leaf that looks while a call does
 * not return: plain stores to a cache line of the thread's own, no system call.
 */
#ifndef SAPWOOD_ACTIVITY_H
#define SAPWOOD_ACTIVITY_H

#include <stddef.h>

#include "table.h"
#include "visibility.h"

/* This thread's place in the table; NULL until its first call. */
extern SAPWOOD_HIDDEN _Thread_local struct sapwood_activity *sapwood_activity
    __attribute__((tls_model("initial-exec")));

/* Gives this thread a place, until it ends. Threads beyond the last place share one
 * that is not in the table. The table must exist. */
SAPWOOD_HIDDEN struct sapwood_activity *sapwood_activity_take(void);

static SAPWOOD_HOT struct sapwood_activity *sapwood_activity_own(void)
{
    struct sapwood_activity *activity = sapwood_activity;
    return __builtin_expect(activity != NULL, 1) ? activity : sapwood_activity_take();
}

#define SAPWOOD_TELL(word, value) atomic_store_explicit(&(word), (value), memory_order_relaxed)

/* This thread enters a call. `begin` is in ticks. */
static SAPWOOD_HOT void sapwood_enter(uint32_t function, uint64_t communicator, int32_t peer, int32_t tag,
                                      uint64_t begin)
{
    struct sapwood_activity *activity = sapwood_activity_own();
    SAPWOOD_TELL(activity->communicator, communicator);
    SAPWOOD_TELL(activity->peer, peer);
    SAPWOOD_TELL(activity->tag, tag);
    SAPWOOD_TELL(activity->since, begin);
    atomic_store_explicit(&activity->call, function, memory_order_release);
}

/* This thread enters a call that sends to one and receives from another. */
static SAPWOOD_HOT void sapwood_enter_exchange(uint32_t function, uint64_t communicator, int32_t source, int32_t tag,
                                               int32_t destination, uint64_t begin)
{
    SAPWOOD_TELL(sapwood_activity_own()->destination, destination);
    sapwood_enter(function, communicator, source, tag, begin);
}

/* It has left a call that took this long. */
static SAPWOOD_HOT void sapwood_leave(uint64_t ticks)
{
    struct sapwood_activity *activity = sapwood_activity_own();
    /* The time first: a reader in between takes the call for one that has just begun. */
    SAPWOOD_TELL(activity->since, atomic_load_explicit(&activity->since, memory_order_relaxed) + ticks);
    atomic_store_explicit(&activity->call, 0, memory_order_release);
}

/* The innermost region that is open in this thread; 0 none. */
static inline void sapwood_activity_region(uint64_t key)
{
    SAPWOOD_TELL(sapwood_activity_own()->region, key);
}

#endif
