/* Where a rank's table and event file outlive it: as ordinary files of a folder.
 *
 *   SAPWOOD_MPI_EVENTS_DIR  the folder, which must be there, be the user's own, not be writable by all users and have
 *                           no files of an earlier run (earlier_run.h)
 *
 * The files are `rank-<rank>.<host>.<pid>.profile`, which is the table, and the same with `.events`.
 * They are mapped as memory files are, and a leaf reads them while the rank runs. All their room is
 * reserved when they are made: a full disk is an error then, and no SIGBUS in the program later.
 * Where they cannot be made one line says why, and both stay memory files.
 *
 * The process has a lock on its table for as long as it lives, by which a reader tells a rank that runs
 * from one that has ended: a POSIX one, which neither a forked child nor a leaf that gets the descriptor
 * shares. Where the file system has no locks a reader takes the process for one that has ended.
 */
#ifndef SAPWOOD_EVENTS_FOLDER_H
#define SAPWOOD_EVENTS_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "visibility.h"

/* Descriptors of both; -1 each for none. */
struct sapwood_kept_files {
    int table;
    int events;
};

/* Makes both files, or none; the header of the table is filled. A process that MPI_Comm_spawn
 * started makes none: its ranks are of another world. */
SAPWOOD_HIDDEN struct sapwood_kept_files sapwood_kept_files_make(uint64_t table_bytes, uint64_t events_bytes);
/* Whether they were made. */
SAPWOOD_HIDDEN bool sapwood_are_files_kept(void);

#endif
