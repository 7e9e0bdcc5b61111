/* Call sites: which file of the program, and where in it. */
#ifndef SAPWOOD_SITES_H
#define SAPWOOD_SITES_H

#include "tallies.h"

/* Fills in the file and the address as it was linked, so that it is the same in all ranks. */
void sapwood_site_found(struct sapwood_tally *tally, const struct sapwood_call *call);

#endif
