/* Whether a folder holds files of another run than this rank's.
 *
 * The ranks of one run start at different times, so that a folder may hold files of this run already. A table is of
 * another run if the launcher calls both runs by different names, or, where one has no name, if it was made before
 * this process was started: processes of one run are in MPI_Init together. A table whose header is not whole yet is
 * being made now. Whatever is there of this rank is of an earlier process, as this one has made nothing yet.
 *
 * A rank looks at a limited number of files, whatever the number of ranks is: with many, a file of this rank that tells
 * nothing of its run may be missed. A few tables of an earlier run are enough for all ranks.
 */
#ifndef SAPWOOD_EARLIER_RUN_H
#define SAPWOOD_EARLIER_RUN_H

#include <stdint.h>

#include "visibility.h"

enum { SAPWOOD_EARLIER_NAME_BYTES = 121 };

enum sapwood_earlier_kind {
    SAPWOOD_EARLIER_NONE,
    SAPWOOD_EARLIER_OF_RANK, /* of this rank, and of none that tells more of its run */
    SAPWOOD_EARLIER_OF_RUN,
};

/* A file of an earlier run. */
struct sapwood_earlier_file {
    enum sapwood_earlier_kind kind;
    char name[SAPWOOD_EARLIER_NAME_BYTES];
};

/* Looks for one in an open folder, by what the launcher calls this run, 0 for nothing; errno, or 0. */
SAPWOOD_HIDDEN int sapwood_earlier_file_find(int folder, uint64_t run, struct sapwood_earlier_file *found);

#endif
