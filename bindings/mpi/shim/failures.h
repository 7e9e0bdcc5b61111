/* Collectives that return an error to the program, as they do where MPI is told not to end it: by
 * MPI_ERRORS_RETURN, or for the exceptions of mpi4py.
 *
 * MPI may have refused the arguments. Then no other process has learned of the call, the program may make it
 * again, and the arguments may be no handles. Or the error has come at work, as that of a message which is longer
 * than the receive for it: then this process has come to the collective, and what it gave is recorded as of one
 * that succeeds. Behind either of them the numbers of the communicator are lost.
 */
#ifndef SAPWOOD_FAILURES_H
#define SAPWOOD_FAILURES_H

#include "events.h"

struct sapwood_failed_collective {
    uint32_t function;
    uint32_t kind; /* SAPWOOD_EVENT_, as if it had succeeded */
    int root;
    int error;
    uint64_t bytes; /* SAPWOOD_NO_AMOUNT where the processes need not give as many */
    uint64_t begin;
    uint64_t ticks;
};

/* Whether this error of a collective has come at work, so that its arguments are good. */
SAPWOOD_HIDDEN bool sapwood_has_begun_work(int error);
/* A collective has failed. */
SAPWOOD_HIDDEN void sapwood_collective_failed(MPI_Comm comm, struct sapwood_failed_collective failed);

#endif
