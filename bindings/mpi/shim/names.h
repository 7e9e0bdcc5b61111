/* Names of communicators, windows and files in the table: where they stand, and how many living ones have each.
 *
 * Names take room in a part of the table's names that regions leave. The name of a freed communicator stays,
 * because what it has done may still be told, until its room is needed for another name. Then what is freed has
 * no name any more, before the room is written. Names that are alike stand once. Where all the room is taken by
 * names of communicators, windows and files that are in use, others get none, which is counted and said once.
 *
 * Callers hold the table's lock.
 */
#ifndef SAPWOOD_NAMES_H
#define SAPWOOD_NAMES_H

#include "events.h"

/* Where the name stands in the table, plus 1; 0 for no text, and where there is no room. It must be held, or stand
 * in the table's communicators, before another one is asked for. */
SAPWOOD_HIDDEN uint32_t sapwood_name_kept(const char *name, size_t length);
/* The communicator or window of a space, which is in use, has this name from now on; 0 none. */
SAPWOOD_HIDDEN void sapwood_name_held(struct sapwood_space *space, uint32_t name);
/* It is freed, but keeps its name as long as there is room. */
SAPWOOD_HIDDEN void sapwood_name_released(const struct sapwood_space *space);
/* The space is emptied, for another one. */
SAPWOOD_HIDDEN void sapwood_name_dropped(struct sapwood_space *space);

#endif
