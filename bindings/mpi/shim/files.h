/* The files that a program has open, by their paths: what a call on one of them is told with.
 *
 * A file's name in the table takes turns with those of communicators at one place (sizes.h). The paths are kept
 * here as well, so that a call on a file puts its own back; calls on files are few and long. Files beyond FILES_MAX,
 * those that Fortran's bindings open past the C ones, and those that were opened while counting was paused are told
 * without a name. So are those whose name finds no room at a call, from then on: it is counted once for each. */
#ifndef SAPWOOD_FILES_H
#define SAPWOOD_FILES_H

#include "library.h"

/* MPI_File is an address in every MPI. */
#define SAPWOOD_FILE_HANDLE(file) ((uint64_t)(uintptr_t)(file))

/* After MPI_File_open. */
SAPWOOD_HIDDEN void sapwood_file_opened(uint64_t file, const char *path);
/* This thread is about to enter a call on a file, which it gives. */
SAPWOOD_HIDDEN uint64_t sapwood_file_entered(uint64_t file);
/* The same where the call is MPI_File_close: the number by which the file is known until that is done, as from then on
 * another one may get the handle. */
SAPWOOD_HIDDEN uint64_t sapwood_file_closing(uint64_t file);
/* After that call, with this number. */
SAPWOOD_HIDDEN void sapwood_file_closed(uint64_t closing);
/* Before a call of MPI_File_close that is not counted. */
SAPWOOD_HIDDEN void sapwood_file_forget(uint64_t file);

#endif
