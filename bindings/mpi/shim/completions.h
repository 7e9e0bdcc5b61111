/* Around the calls that may complete requests: MPI_Wait, MPI_Test and their forms.
 *
 * What a receive has received stands in its status alone. So where the program wants no statuses and
 * one of the requests is a receive that is followed, MPI gets room for them here instead: of this
 * thread for up to 64 requests, from the heap beyond. What the program sees of the call, its error
 * codes too, is the same.
 */
#ifndef SAPWOOD_COMPLETIONS_H
#define SAPWOOD_COMPLETIONS_H

#include "messages.h"

enum sapwood_statuses {
    SAPWOOD_STATUS_OF_ONE, /* of the request that completes */
    SAPWOOD_STATUS_OF_EACH,
};

/* The followed requests of one call that may complete them. */
struct sapwood_completion {
    uint32_t first; /* number of a request plus 1; 0 none */
    uint32_t generation;
    struct sapwood_handles handles;
    enum sapwood_statuses kind;
    bool is_test;         /* the call waits for nothing */
    const void *statuses; /* NULL where there are none to read */
    void *allocated;
};

/* Of a call that waits, and of one that only tests. */
#define SAPWOOD_NO_COMPLETION {.first = 0}
#define SAPWOOD_NO_TEST {.is_test = true}

/* Which requests a call has completed. */
struct sapwood_completed {
    const int *indices; /* those of the statuses; NULL for all in order */
    int count;          /* how many indices; without these 1 or 0, for all or none */
};

/* Before such a call: notes those that are followed. The statuses that the call is to write. */
SAPWOOD_HIDDEN void *sapwood_completes(struct sapwood_completion *completion, struct sapwood_handles handles,
                                       void *statuses, enum sapwood_statuses kind);
/* After it. */
SAPWOOD_HIDDEN void sapwood_completed(struct sapwood_completion *completion, uint32_t function,
                                      struct sapwood_completed completed, uint64_t begin, uint64_t ticks);
/* After it has failed with this error. */
SAPWOOD_HIDDEN void sapwood_completion_failed(struct sapwood_completion *completion, struct sapwood_completed completed,
                                              int error);

#endif
