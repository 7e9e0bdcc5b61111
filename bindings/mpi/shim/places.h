/* The places of communicators, windows and persistent collectives in the event file (events.h): which
 * of them a handle has, and which ones are free.
 *
 * Places are taken in order. Once all have been taken, those of freed communicators are used again,
 * those that were freed first before others, each only when no record in any ring names it any more,
 * and no followed request. Where none is left, communicators have no place until one is freed.
 */
#ifndef SAPWOOD_PLACES_H
#define SAPWOOD_PLACES_H

#include "events.h"

/* Callers of these five hold the table's lock.
 *
 * The space of a handle; NULL where there is none. */
SAPWOOD_HIDDEN struct sapwood_space *sapwood_place_of(uint64_t handle);
/* A free space, empty but for `since`, which readers do not look at yet; NULL where none is free.
 * It must be taken before another one is asked for. */
SAPWOOD_HIDDEN struct sapwood_space *sapwood_place_free(void);
/* Shows it to readers. */
SAPWOOD_HIDDEN void sapwood_place_take(struct sapwood_space *space, uint64_t handle);
/* It is found by this handle from now on. */
SAPWOOD_HIDDEN void sapwood_place_moved(struct sapwood_space *space, uint64_t handle);
SAPWOOD_HIDDEN void sapwood_place_leave(struct sapwood_space *space);

/* How many communicators had the place of a space before. */
SAPWOOD_HIDDEN uint32_t sapwood_place_uses(const struct sapwood_space *space);
/* Whether the communicator that had a place behind this number of others is freed, and no request
 * names it. */
SAPWOOD_HIDDEN bool sapwood_place_is_over(uint32_t place, uint32_t uses);
/* This number of requests more, or fewer, names it, after their records were written. Callers hold the lock of requests. */
SAPWOOD_HIDDEN void sapwood_place_named(const struct sapwood_space *space, int amount);

#endif
