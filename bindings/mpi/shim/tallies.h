/* The tallies: a table of calls by subject, with open addressing and without a lock once
 * a subject is known.
 */
#ifndef SAPWOOD_TALLIES_H
#define SAPWOOD_TALLIES_H

#include "extras.h"

/* Completes a new tally: its subject and its name. */
typedef void sapwood_tally_fill(struct sapwood_tally *tally, const struct sapwood_call *call);

/* Adds a call to the tally of this kind, function and handle. `fill` is called at its first
 * use; without it the handle is the subject of a peer, else a number of its own. */
void sapwood_tally(unsigned kind, uint64_t function, uint64_t handle, const struct sapwood_call *call, uint64_t ns,
                   sapwood_tally_fill *fill);

/* Adds bytes to the tally that the call has made, if it found room then. */
void sapwood_tally_later(unsigned kind, uint64_t function, uint64_t handle, uint64_t bytes);

/* A subject's text in the name area: its offset plus 1, 0 where it does not fit. The same text
 * twice is stored once. Callers hold the table's lock. */
uint32_t sapwood_tally_name(const char *text, size_t length);

/* The name of a new subject that has no `fill`. */
uint32_t sapwood_tally_subject_name(unsigned kind, const struct sapwood_call *call);

/* Subjects of this kind and handle are found no more. */
void sapwood_tallies_forget(unsigned kind, uint64_t handle);

#endif
