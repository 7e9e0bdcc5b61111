/* Statuses, in C and in Fortran, where they have the same words at an address of its own alignment. */
#ifndef SAPWOOD_STATUS_H
#define SAPWOOD_STATUS_H

#include <string.h>

#include "library.h"

static inline MPI_Status sapwood_status_read(const void *status)
{
    MPI_Status one;
    memcpy(&one, status, sizeof one);
    return one;
}

#if defined(SAPWOOD_FOR_ABI)
#define SAPWOOD_CANCELLED (-1)

/* The count in a status of MPICH, which has it in the first two of the words that are the library's own. */
static inline int64_t sapwood_count_of(const MPI_Status *status)
{
    uint32_t high = (uint32_t)status->MPI_internal[1];
    return high & 1 ? SAPWOOD_CANCELLED : (int64_t)((uint64_t)(high >> 1) << 32 | (uint32_t)status->MPI_internal[0]);
}

static inline uint64_t sapwood_count_asked(const MPI_Status *status)
{
    int is_cancelled = 0;
    MPI_Count bytes = 0;
    if (sapwood_library.test_cancelled(status, &is_cancelled) != MPI_SUCCESS || is_cancelled ||
        sapwood_library.get_count_c(status, MPI_BYTE, &bytes) != MPI_SUCCESS || bytes < 0)
        return 0;
    return (uint64_t)bytes;
}
#endif

/* Bytes of the message that came; 0 if the request was cancelled. The layout is a part of the ABI of Open MPI
 * and of MPICH; asking the library for a number of elements would cost more than the receive. The standard's
 * ABI leaves the words to the library: a trial shows whether they are MPICH's; else the library is asked. */
static inline uint64_t sapwood_status_bytes(const void *status)
{
    MPI_Status one = sapwood_status_read(status);
#if defined(SAPWOOD_FOR_OPENMPI)
    return one._cancelled ? 0 : one._ucount;
#elif defined(SAPWOOD_FOR_ABI)
    if (!sapwood_library.has_mpich_status)
        return sapwood_count_asked(&one);
    int64_t bytes = sapwood_count_of(&one);
    return bytes < 0 ? 0 : (uint64_t)bytes;
#else
    uint32_t high = (uint32_t)one.count_hi_and_cancelled;
    return high & 1 ? 0 : (uint64_t)(high >> 1) << 32 | (uint32_t)one.count_lo;
#endif
}

/* Whether the program wants no status, or no statuses. */
static inline bool sapwood_is_ignored(const void *status, bool is_fortran)
{
    if (!is_fortran)
        return status == MPI_STATUS_IGNORE || status == MPI_STATUSES_IGNORE;
    return status != NULL &&
           (status == sapwood_library.fortran_status_ignore || status == sapwood_library.fortran_statuses_ignore);
}

#endif
