/* The requests that are followed until they complete, whether for their bytes or as events: one
 * table, found by the handle that the program has.
 *
 * A receive is followed from the call that posts it until the call that completes it says by its
 * status what came; a persistent request, also of a collective, from its initialisation until it is
 * freed; a non-blocking collective only while events are recorded. A request that finds no room, and a receive whose
 * completion no call shows, is counted as untracked: its bytes are not known. While counting is
 * paused only persistent requests are in the table.
 */
#ifndef SAPWOOD_REQUESTS_H
#define SAPWOOD_REQUESTS_H

#include "events.h"

enum { SAPWOOD_REQUESTS = 16384 };

enum sapwood_request_kind {
    SAPWOOD_COLLECTIVE,
    SAPWOOD_RECEIVE,
    SAPWOOD_RECEIVE_WILD, /* an event whose source or tag its status tells */
    SAPWOOD_PERSISTENT_SEND,
    SAPWOOD_PERSISTENT_RECEIVE,
    /* Its space is its own; its peer is the root, its tag what a record of a start has in that place. */
    SAPWOOD_PERSISTENT_COLLECTIVE,
};

/* A request that has not completed, or is persistent. */
struct sapwood_request {
    uint64_t handle;
    struct sapwood_space *space; /* NULL: it is no event, or a persistent collective for which there is none */
    uint64_t bytes;              /* what each start of a persistent send or collective counts; of a collective
                                  * SAPWOOD_NO_AMOUNT if that is nothing */
    const void *site;            /* where it was made */
    uint64_t comm;               /* handle of its communicator, if it has one; 0 none */
    uint32_t function;           /* which made it, and has its bytes; 0 if these are not counted */
    uint32_t next;               /* in its bucket or the free list: number plus 1 */
    uint32_t waited;             /* the next one of the same call, likewise */
    uint32_t sequence; /* of a persistent collective, of its latest start; 0 if its completion is no event */
    uint32_t posted; /* how many receives had been posted on the communicator with this one */
    int32_t index;   /* its place in that call */
    int32_t peer;
    int32_t tag;
    uint8_t kind;
    uint8_t class;
    bool is_sure;
    bool is_of_neighbours; /* a persistent collective: for which others it waits is not followed */
    bool is_active;   /* it is not persistent, or it was started and has not completed since */
    bool is_waited;   /* a thread is in a call that completes it, and will look at it */
    bool is_replaced; /* MPI has given its handle to another request meanwhile: it is in no bucket */
};

static inline bool sapwood_request_is_persistent(const struct sapwood_request *request)
{
    return request->kind == SAPWOOD_PERSISTENT_SEND || request->kind == SAPWOOD_PERSISTENT_RECEIVE ||
           request->kind == SAPWOOD_PERSISTENT_COLLECTIVE;
}

static inline bool sapwood_request_is_collective(const struct sapwood_request *request)
{
    return request->kind == SAPWOOD_COLLECTIVE || request->kind == SAPWOOD_PERSISTENT_COLLECTIVE;
}

static inline bool sapwood_request_is_receive(const struct sapwood_request *request)
{
    return !sapwood_request_is_collective(request) && request->kind != SAPWOOD_PERSISTENT_SEND;
}

/* How many are followed. */
extern SAPWOOD_HIDDEN _Atomic uint32_t sapwood_requests_followed;
/* Incremented when requests are forgotten: numbers from before mean nothing. */
extern SAPWOOD_HIDDEN uint32_t sapwood_requests_generation;

static SAPWOOD_HOT bool sapwood_requests_are_followed(void)
{
    return atomic_load_explicit(&sapwood_requests_followed, memory_order_relaxed) != 0;
}

/* Requests and channels are followed without a lock where one thread at a time calls MPI. Callers of
 * all that follows hold the lock. */
SAPWOOD_HIDDEN void sapwood_requests_lock(void);
SAPWOOD_HIDDEN void sapwood_requests_unlock(void);

/* Whether one more finds room, whether or not its handle is that of a followed one. */
SAPWOOD_HIDDEN bool sapwood_requests_have_room(void);
/* The number of a followed request plus 1; 0 for others. */
SAPWOOD_HIDDEN uint32_t sapwood_request_found(uint64_t handle);
SAPWOOD_HIDDEN struct sapwood_request *sapwood_request_at(uint32_t number);
SAPWOOD_HIDDEN void sapwood_request_add(struct sapwood_request request);
SAPWOOD_HIDDEN void sapwood_request_remove(uint32_t number);
/* Nothing will show what it has received. */
SAPWOOD_HIDDEN void sapwood_request_lost(const struct sapwood_request *request);
/* Counting has paused: calls pass unseen, and handles return. Persistent requests stay, as not
 * started: that they are freed is seen always. Takes the lock itself. */
SAPWOOD_HIDDEN void sapwood_requests_forget(void);

#endif
