/* Other tools that take MPI's functions by their names, as PMPI lets them.
 *
 * A tool behind the shim gets every call from it. One in front passes its calls on to
 * PMPI, past the shim, which can only say so.
 */
#ifndef SAPWOOD_CHAIN_H
#define SAPWOOD_CHAIN_H

#include <stdint.h>

#include "visibility.h"

/* The names of all wrapped functions, in the generated file; ends with NULL. */
extern SAPWOOD_HIDDEN const char *const sapwood_wrapped[];

/* What a wrapper calls: the next library's function of this name, which is another tool's
 * or MPI's own, or else MPI's profiling twin. */
void *sapwood_chained(const char *name, const char *twin);

/* How many of the wrapped functions a library in front of the shim takes. Its path goes to
 * `*library`; NULL if there is none. */
uint32_t sapwood_taken_functions(const char **library);

/* At the end of a process in which no call was seen: says so if MPI was used nevertheless. */
void sapwood_say_unseen(void);

#endif
