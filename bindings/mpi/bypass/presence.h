/* Which ranks of the job are on this host, with this library and these settings.
 *
 * Each rank binds an abstract socket before PMPI_Init. Its name holds the job, the
 * rank in MPI_COMM_WORLD, the library's version and a digest of the settings. MPI's
 * own initialisation ends at no rank before all have begun it, so that from
 * then on every rank gets the same answer for every rank, without a message: a rank
 * on another host, of another version, or without the library has bound no such name.
 */
#ifndef SAPWOOD_BYPASS_PRESENCE_H
#define SAPWOOD_BYPASS_PRESENCE_H

#include <stdbool.h>

/* Binds this rank's name. False where the launcher told no rank or job. */
bool bypass_presence_announce(void);

/* Takes the name back; the job ends, or the launcher's rank was not MPI's. */
void bypass_presence_withdraw(void);

/* The launcher's rank, by which this process announced itself. */
int bypass_presence_rank(void);

/* Whether that rank of MPI_COMM_WORLD is here. One thread at a time. */
bool bypass_presence_of(int world_rank);

#endif
