/* Communicators, windows and the requests of persistent collectives in the event file (events.h): from when they are
 * made until they are freed. */
#ifndef SAPWOOD_SPACES_H
#define SAPWOOD_SPACES_H

#include "library.h"
#include "sizes.h"

struct sapwood_space;

/* Of communicators that found no place. */
extern SAPWOOD_HIDDEN struct sapwood_space sapwood_no_space;
/* Found by the communicator's place in the caches of sizes.h; never NULL once counting begins. */
extern SAPWOOD_HIDDEN struct sapwood_space *_Atomic sapwood_space_at[SAPWOOD_CACHE_WORDS];

SAPWOOD_HIDDEN void sapwood_spaces_begin(void);
/* Finds the space of a communicator, or makes it; sapwood_no_space when all are taken. Once that was so, of one
 * whose making was not recorded, or that others are told from by their number alone, the numbers are lost. */
SAPWOOD_HIDDEN struct sapwood_space *sapwood_space_found(MPI_Comm comm);
/* The same of one that the program has learned of, and that may be MPI_COMM_NULL. */
SAPWOOD_HIDDEN void sapwood_space_seen(MPI_Comm comm);
/* The space of a communicator, for a call that has only begun: MPI is asked nothing, as the communicator may be none.
 * sapwood_no_space where it has no space. */
SAPWOOD_HIDDEN struct sapwood_space *sapwood_space_known(MPI_Comm comm);

/* Before a call that makes communicators, and that all members of `parent` make: what tells this
 * call from all others, the same in all members. 0 where `parent` is not known. */
SAPWOOD_HIDDEN uint64_t sapwood_origin_called(MPI_Comm parent);
/* The same of a call that only the members of the new communicator make, with a tag. */
SAPWOOD_HIDDEN uint64_t sapwood_origin_tagged(MPI_Comm parent, int tag);
/* Such a call without a tag has failed: whether the other members count it is not known. */
SAPWOOD_HIDDEN void sapwood_origin_failed(MPI_Comm parent);
/* After a communicator was made by the call of `origin`; MPI_COMM_NULL is no communicator. */
SAPWOOD_HIDDEN void sapwood_space_made(MPI_Comm comm, uint64_t origin);
/* The same of one with the groups of `parent` of which MPI must not be asked anything yet. */
SAPWOOD_HIDDEN void sapwood_space_promised(MPI_Comm parent, MPI_Comm comm, uint64_t origin);
/* A collective has failed here: whether the other processes count it is not known. */
SAPWOOD_HIDDEN void sapwood_space_number_lost(MPI_Comm comm);
/* Before a communicator is freed. */
void sapwood_space_forget(MPI_Comm comm);
/* Windows have handles of their own kind; these are SAPWOOD_HANDLE of them. */
#define SAPWOOD_HELD_ALL UINT32_MAX
/* After a window was made on a communicator. */
void sapwood_window_made(MPI_Comm comm, uint64_t window);
/* Before it is freed by a call that is not counted. */
void sapwood_window_forget(uint64_t window);
/* This thread is about to free it: the number by which it is known until that is done. */
SAPWOOD_HIDDEN uint64_t sapwood_window_closing(uint64_t window);
/* After that call, with this number. */
SAPWOOD_HIDDEN void sapwood_window_closed(uint64_t closing);
/* After a rank's part of it was locked, or all; a negative number stands for all. */
void sapwood_window_locked(uint64_t window, int rank);
/* Before it is unlocked. */
void sapwood_window_unlocked(uint64_t window, int rank);

/* One more request of a persistent collective was made on a communicator that has a space. There is a space of its own
 * for it until it is freed, which may be after its communicator; NULL where all spaces are taken. */
SAPWOOD_HIDDEN struct sapwood_space *sapwood_persistent_space_made(const struct sapwood_space *comm);
/* The same of one that is not followed. */
SAPWOOD_HIDDEN void sapwood_persistent_space_counted(const struct sapwood_space *comm);
/* A call that makes one has failed: whether the other processes count it is not known. */
SAPWOOD_HIDDEN void sapwood_persistent_space_failed(MPI_Comm comm);
/* It is freed, once. */
SAPWOOD_HIDDEN void sapwood_persistent_space_left(struct sapwood_space *space);

#endif
