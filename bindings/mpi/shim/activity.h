/* What each thread does at this moment, for a leaf that looks while a call does
 * not return: plain stores to a cache line of the thread's own, no system call.
 */
#ifndef SAPWOOD_ACTIVITY_H
#define SAPWOOD_ACTIVITY_H

#include <stdbool.h>
#include <stddef.h>

#include "table.h"
#include "visibility.h"

/* What each thread has of its own, in one place, so that it is reached once for all. */
struct sapwood_thread {
    /* Its place in the table; NULL until its first call of MPI. */
    struct sapwood_activity *activity;
    /* The same, whether or not it has called MPI; NULL until its first region or call. */
    struct sapwood_activity *place;
    /* It is in a counted call. */
    bool is_inside;
};
extern SAPWOOD_HIDDEN _Thread_local struct sapwood_thread sapwood_thread __attribute__((tls_model("initial-exec")));

/* Gives this thread a place, until it ends, as one that calls MPI. Threads beyond the last place
 * share one that is not in the table. The table must exist. */
SAPWOOD_HIDDEN struct sapwood_activity *sapwood_activity_take(void);
/* The same of one that has only opened a region. */
SAPWOOD_HIDDEN struct sapwood_activity *sapwood_activity_place(void);
/* In a forked child, which has one thread. */
SAPWOOD_HIDDEN void sapwood_activity_forked(void);

/* Several threads that lived at a time have called MPI: from then on the rank is in MPI while all of them are. Calls of
 * a thread that is alone do not look here: its rank is in another phase (observe.h). */
extern SAPWOOD_HIDDEN _Atomic bool sapwood_are_several;
/* A call has returned in such a rank: sapwood_leave, and counts the time in which all threads were in MPI. */
SAPWOOD_HIDDEN void sapwood_leave_threads(struct sapwood_activity *own, uint64_t ticks);

static SAPWOOD_HOT struct sapwood_activity *sapwood_activity_own(void)
{
    struct sapwood_activity *activity = sapwood_thread.activity;
    return __builtin_expect(activity != NULL, 1) ? activity : sapwood_activity_take();
}

#define SAPWOOD_TELL(word, value) atomic_store_explicit(&(word), (value), memory_order_relaxed)

/* This thread enters a call. `begin` is in ticks. Its place, which is the same when the call returns: threads get
 * theirs before and give it back when they end. */
static SAPWOOD_HOT struct sapwood_activity *sapwood_enter(uint32_t function, uint64_t communicator, int32_t peer,
                                                          int32_t tag, uint64_t begin)
{
    struct sapwood_activity *activity = sapwood_activity_own();
    SAPWOOD_TELL(activity->communicator, communicator);
    SAPWOOD_TELL(activity->peer, peer);
    SAPWOOD_TELL(activity->tag, tag);
    SAPWOOD_TELL(activity->since, begin);
    atomic_store_explicit(&activity->call, function, memory_order_release);
    return activity;
}

/* This thread enters a call that sends to one and receives from another. */
static SAPWOOD_HOT struct sapwood_activity *sapwood_enter_exchange(uint32_t function, uint64_t communicator,
                                                                   int32_t source, int32_t tag, int32_t destination,
                                                                   uint64_t begin)
{
    SAPWOOD_TELL(sapwood_activity_own()->destination, destination);
    return sapwood_enter(function, communicator, source, tag, begin);
}

/* The thread of this place, the only one that calls MPI, has left a call that took this long. */
static SAPWOOD_HOT void sapwood_stop(struct sapwood_activity *activity, uint64_t ticks)
{
    /* The time first: a reader in between takes the call for one that has just begun. */
    SAPWOOD_TELL(activity->since, atomic_load_explicit(&activity->since, memory_order_relaxed) + ticks);
    atomic_store_explicit(&activity->call, 0, memory_order_release);
}

/* The thread of this place has left a call that took this long. */
static SAPWOOD_HOT void sapwood_leave(struct sapwood_activity *activity, uint64_t ticks)
{
    if (atomic_load_explicit(&sapwood_are_several, memory_order_acquire))
        sapwood_leave_threads(activity, ticks);
    else
        sapwood_stop(activity, ticks);
}

/* The innermost region that is open in this thread; 0 none. */
static inline void sapwood_activity_region(uint64_t key)
{
    struct sapwood_activity *activity = sapwood_thread.activity;
    SAPWOOD_TELL((activity != NULL ? activity : sapwood_activity_place())->region, key);
}

#endif
