/* Point-to-point calls and requests: which request has which bytes, and as events which message of
 * its channel each call takes.
 *
 * Messages are told only where waits were asked for at the start, and under MPI_THREAD_MULTIPLE those
 * of channels that one thread of the rank uses. A receive of which it is not sure which message it
 * took is counted (events.h, `unsure`) and recorded without a claim, with 0 members:
 *   - one that was posted while a non-blocking receive from any source or tag had not completed,
 *     and such a receive itself if another one was posted meanwhile;
 *   - one that completes together with such ones, or together with more than 255;
 *   - persistent receives, and all on intercommunicators;
 *   - one in a channel in which a second thread has received;
 *   - all of a rank once a call could not be followed: MPI_Cancel, more channels or requests than
 *     fit.
 */
#ifndef SAPWOOD_MESSAGES_H
#define SAPWOOD_MESSAGES_H

#include "events.h"
#include "extras.h"
#include "requests.h"

/* A call that has made a request whose bytes are counted later. */
struct sapwood_posting {
    uint32_t function;
    unsigned class;
    const void *site;
    MPI_Comm comm; /* if `has_comm` */
    bool has_comm;
    bool is_of_neighbours; /* a persistent collective */
    int peer;
    int tag;
    uint64_t bytes; /* of a persistent send or collective */
    MPI_Request request;
};

/* Requests as the program gives them to a call. */
struct sapwood_handles {
    const void *all;
    int count;
    bool is_fortran;
};

SAPWOOD_HIDDEN void sapwood_message_sent(uint32_t function, uint32_t kind, MPI_Comm comm, int dest, int tag,
                                         uint64_t bytes, uint64_t begin, uint64_t ticks);
SAPWOOD_HIDDEN void sapwood_message_received(uint32_t function, MPI_Comm comm, int source, int tag, const void *status,
                                             uint64_t begin, uint64_t ticks);
SAPWOOD_HIDDEN void sapwood_receive_posted(const struct sapwood_posting *posting);
/* A collective was started that has this number in its communicator. */
SAPWOOD_HIDDEN void sapwood_collective_followed(uint32_t function, MPI_Comm comm, uint32_t sequence, int root,
                                                MPI_Request request, uint64_t returned);
/* `kind` is that of a persistent request. */
SAPWOOD_HIDDEN void sapwood_persistent_made(const struct sapwood_posting *made, enum sapwood_request_kind kind);
SAPWOOD_HIDDEN void sapwood_persistent_started(uint32_t function, struct sapwood_handles handles, uint64_t begin,
                                               uint64_t ticks);
/* The call that was to start them has failed. */
SAPWOOD_HIDDEN void sapwood_persistent_start_failed(struct sapwood_handles handles);
SAPWOOD_HIDDEN void sapwood_request_freed(MPI_Request request);

/* The one at this place. */
SAPWOOD_HIDDEN uint64_t sapwood_request_handle(struct sapwood_handles handles, int index);
/* A receive from any source or tag has completed: now its message is known; not without a status.
 * Callers of this and of the next hold the lock. */
SAPWOOD_HIDDEN void sapwood_message_resolved(struct sapwood_request *request, const void *status);
/* Tells the events of a list of completed requests, the first of which has this number, and removes
 * those that are not persistent. */
SAPWOOD_HIDDEN void sapwood_messages_completed(uint32_t first, uint32_t function, uint64_t begin, uint64_t ticks);

#endif
