/* What the bypass knows of a communicator: its segment, or why it has none.
 *
 * The knowledge hangs on the communicator as an attribute, which MPI deletes with it
 * and does not copy to duplicates.
 */
#ifndef SAPWOOD_BYPASS_COMMUNICATOR_H
#define SAPWOOD_BYPASS_COMMUNICATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "account.h"
#include "calls.h"
#include "segment.h"
#include "wait.h"

struct bypass_communicator {
    _Atomic(MPI_Comm) comm;
    bool open;                  /* has a segment */
    bool settled;               /* it is known whether it gets one */
    enum bypass_cause cause;    /* why it is not open */
    uint32_t calls;             /* before it is settled */
    uint32_t rank, size;
    uint64_t next;              /* instance */
    int *world_ranks;
    struct bypass_segment segment;
    struct bypass_patience patience;
    struct bypass_communicator *spare;
};

/* Makes ready to be asked, and settles MPI_COMM_WORLD, which is collective: all
 * ranks are in MPI_Init. Returns the segment of MPI_COMM_WORLD, or NULL. */
const struct bypass_segment *bypass_communicators_begin(void);

/* Where lateness is counted, by rank in MPI_COMM_WORLD. */
struct bypass_lateness *bypass_lateness(void);

/* The same by edge. */
const struct bypass_edges *bypass_edges(void);

/* NULL if the handle is not a communicator. Collective over `comm` at the call that
 * settles it, which is the same call at all its ranks. */
struct bypass_communicator *bypass_communicator_of(MPI_Comm comm);

#endif
