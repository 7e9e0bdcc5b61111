/* Point-to-point calls and requests as events: which message of its channel each call takes, and
 * which collective it completes.
 *
 * Messages are told only where waits were asked for at the start, and under MPI_THREAD_MULTIPLE those
 * of channels that one thread of the rank uses. A receive of which it is not sure which message it took is counted (events.h, `unsure`)
 * and recorded without a claim, with 0 members:
 *   - one that was posted while a non-blocking receive from any source or tag had not completed,
 *     and such a receive itself if another one was posted meanwhile;
 *   - one that completes together with such ones, or together with more than 255;
 *   - persistent receives, and all on intercommunicators;
 *   - one in a channel in which a second thread has received;
 *   - all of a rank once a call could not be followed: MPI_Cancel, more channels or requests than
 *     fit, a receive from any source in Fortran.
 */
#ifndef SAPWOOD_MESSAGES_H
#define SAPWOOD_MESSAGES_H

#include "events.h"

/* The followed requests of one call that may complete them. */
struct sapwood_completion {
    uint32_t first; /* number of a request plus 1; 0 none */
    const void *requests;
    MPI_Status *statuses; /* NULL where they cannot be read */
    bool is_fortran;
    bool is_one; /* one status, of the one that completes */
};

#define SAPWOOD_NO_COMPLETION {.first = 0}

/* A status that can be read, where one is needed to know the message of a receive. */
SAPWOOD_HIDDEN MPI_Status *sapwood_readable(int source, int tag, MPI_Status *status);

SAPWOOD_HIDDEN void sapwood_message_sent(uint32_t function, uint32_t kind, MPI_Comm comm, int dest, int tag,
                                         uint64_t bytes, uint64_t begin, uint64_t ticks);
SAPWOOD_HIDDEN void sapwood_message_received(uint32_t function, MPI_Comm comm, int source, int tag,
                                             const MPI_Status *status, uint64_t begin, uint64_t ticks);
SAPWOOD_HIDDEN void sapwood_message_posted(MPI_Comm comm, int source, int tag, MPI_Request request);
SAPWOOD_HIDDEN void sapwood_collective_followed(MPI_Comm comm, uint32_t sequence, int root, MPI_Request request);
SAPWOOD_HIDDEN void sapwood_persistent_made(MPI_Comm comm, bool is_send, int peer, int tag, MPI_Request request);
SAPWOOD_HIDDEN void sapwood_persistent_started(uint32_t function, const void *requests, int count, bool is_fortran,
                                               uint64_t begin);
SAPWOOD_HIDDEN void sapwood_request_freed(MPI_Request request);

/* Before a call that may complete requests: notes those that are followed. The statuses that the
 * call is to write. */
SAPWOOD_HIDDEN MPI_Status *sapwood_completes(struct sapwood_completion *completion, const void *requests, int count,
                                             MPI_Status *statuses, bool is_one, bool is_fortran);
/* After it. `indices` are those of the statuses, NULL for all in order. */
SAPWOOD_HIDDEN void sapwood_completed(const struct sapwood_completion *completion, uint32_t function,
                                      const int *indices, int count, uint64_t begin, uint64_t ticks);
/* After it has failed. */
SAPWOOD_HIDDEN void sapwood_completion_failed(const struct sapwood_completion *completion);

#endif
