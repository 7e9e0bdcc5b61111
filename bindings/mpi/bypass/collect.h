/* Collective calls in shared memory, where the last to arrive does the work.
 *
 * Application-bypass reduction after Wagner, Buntinas, Panda and Brightwell
 * ("Application-Bypass Reduction for Large-Scale Clusters"), for ranks that share
 * memory: there a reduction needs no descriptor and no interrupt, because
 * whichever rank completes a node of the tree folds it in its own time.
 */
#ifndef SAPWOOD_BYPASS_COLLECT_H
#define SAPWOOD_BYPASS_COLLECT_H

#include <stdbool.h>
#include <stdint.h>

#include "calls.h"
#include "settings.h"

/* One call of a rank. Buffers are NULL where MPI does not use them. */
struct bypass_call {
    enum bypass_kind kind;
    const void *source;
    void *target;
    int64_t count;
    MPI_Datatype type;
    MPI_Op operation;
    int root;
    MPI_Comm comm;
};

/* Does the call, and sets *outcome to what it returns; or returns false, having
 * counted the cause, and the caller asks the MPI library. Which of the two depends on
 * nothing but what is equal at all ranks. */
bool bypass_collect(const struct bypass_call *call, int *outcome);

#endif
