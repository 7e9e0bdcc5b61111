/* The shim's only words: single lines on standard error. */
#ifndef SAPWOOD_SAY_H
#define SAPWOOD_SAY_H

#include <stdbool.h>

/* Writes "sapwood: ..." and a line end with one write(2). */
__attribute__((format(printf, 1, 2))) void sapwood_say(const char *format, ...);

/* Whether this rank speaks for those of its host; where the launcher does not tell, the first of all
 * ranks does. */
bool sapwood_is_first_of_host(int world_rank);

#endif
