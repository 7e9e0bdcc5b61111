/* How big a communicator is and how many bytes a call moves.
 *
 * Sizes are asked of the library once per handle and kept in small direct-mapped
 * caches, one word per entry so that threads need no lock. Handles are reused
 * after a free, so each free forgets its entry.
 */
#ifndef SAPWOOD_SIZES_H
#define SAPWOOD_SIZES_H

#include "library.h"

enum { SAPWOOD_CACHE_BITS = 6, SAPWOOD_CACHE_WORDS = 1 << SAPWOOD_CACHE_BITS };
static_assert((int)SAPWOOD_CACHE_WORDS == (int)SAPWOOD_COMMUNICATORS, "a search in the table begins at a place of it");

extern SAPWOOD_HIDDEN _Atomic uint64_t sapwood_classes[SAPWOOD_CACHE_WORDS]; /* handle << 8 | class */
extern SAPWOOD_HIDDEN _Atomic uint64_t sapwood_sizes[SAPWOOD_CACHE_WORDS];   /* handle << 16 | bytes */

/* MPI is initialised: asks for the sizes of basic types. */
SAPWOOD_HIDDEN void sapwood_sizes_begin(void);

/* Asks the library and fills the cache. */
unsigned sapwood_class_asked(MPI_Comm comm);
uint64_t sapwood_size_asked(MPI_Datatype type);
/* Of a basic type, whatever has its place in the cache; 0 of another one. */
SAPWOOD_HIDDEN uint64_t sapwood_basic_size(uint64_t type_handle);

/* MPICH's handles are ints, Open MPI's are addresses: both fit 48 bits. The standard's ABI has addresses,
 * in which MPICH passes its ints. */
#if defined(SAPWOOD_FOR_MPICH)
#define SAPWOOD_HANDLE(handle) ((uint64_t)(uint32_t)(handle))
#else
#define SAPWOOD_HANDLE(handle) ((uint64_t)(uintptr_t)(handle))
#endif

static SAPWOOD_HOT unsigned sapwood_cache_place(uint64_t handle)
{
    return (unsigned)(handle * UINT64_C(0x9E3779B97F4A7C15) >> (64 - SAPWOOD_CACHE_BITS));
}

/* Size class as in table.h of a communicator with this many processes. */
static inline unsigned sapwood_class_of_size(unsigned size)
{
    return size <= 1 ? 0 : 32 - (unsigned)__builtin_clz(size - 1);
}

/* Size class of a communicator as in table.h. */
static SAPWOOD_HOT unsigned sapwood_class(MPI_Comm comm)
{
    uint64_t handle = SAPWOOD_HANDLE(comm);
    uint64_t word = atomic_load_explicit(&sapwood_classes[sapwood_cache_place(handle)], memory_order_relaxed);
    return __builtin_expect(word >> 8 == handle, 1) ? (unsigned)(word & 0xff) : sapwood_class_asked(comm);
}

/* Bytes of data in one element of the type. */
static SAPWOOD_HOT uint64_t sapwood_size(MPI_Datatype type)
{
    uint64_t handle = SAPWOOD_HANDLE(type);
    uint64_t word = atomic_load_explicit(&sapwood_sizes[sapwood_cache_place(handle)], memory_order_relaxed);
    return __builtin_expect(word >> 16 == handle, 1) ? word & 0xffff : sapwood_size_asked(type);
}

static SAPWOOD_HOT uint64_t sapwood_bytes(int64_t count, MPI_Datatype type)
{
    return count <= 0 ? 0 : (uint64_t)count * sapwood_size(type);
}

/* The same out of the way of calls whose bytes are known. */
SAPWOOD_HIDDEN uint64_t sapwood_bytes_asked(int64_t count, MPI_Datatype type);

/* After MPI_Comm_set_name; the length of Fortran's text, which spaces fill. */
void sapwood_name_comm(MPI_Comm comm, const char *name, size_t length);
/* The same of a window, after MPI_Win_set_name, or of a file (files.h). Whether there was room for it. */
bool sapwood_name_handle(uint64_t handle, const char *name, size_t length);
/* Whether the table tells a name of this handle. */
SAPWOOD_HIDDEN bool sapwood_has_name(uint64_t handle);

/* A handle is freed: what the table says of it holds no more. */
SAPWOOD_HIDDEN void sapwood_forget_name(uint64_t handle);
/* A number that no handle has, another one each time: for a window or file whose handle MPI may give to another one
 * before the call returns that frees or closes it, and for the request of a persistent collective. */
SAPWOOD_HIDDEN uint64_t sapwood_number_of_none(void);
/* What the table says of a handle it says of this number from now on. Callers do not hold the table's lock. */
SAPWOOD_HIDDEN void sapwood_name_moved(uint64_t handle, uint64_t to);

/* Before a handle is freed. */
void sapwood_forget_comm(MPI_Comm comm);
void sapwood_forget_type(MPI_Datatype type);

int sapwood_rank(MPI_Comm comm);
int sapwood_local_size(MPI_Comm comm);
/* Ranks that a collective exchanges with: the remote group of an intercommunicator. */
int sapwood_peers(MPI_Comm comm);
/* Outgoing neighbours in the communicator's virtual topology. */
int sapwood_neighbors(MPI_Comm comm);

/* Whether a rooted collective has no block for this rank. */
static inline bool sapwood_no_block(int root)
{
    return root == MPI_ROOT || root == MPI_PROC_NULL;
}

/* Sums over count arrays, C and Fortran alike; `_large` for the _c functions. */
int64_t sapwood_sum(const int *counts, int length);
int64_t sapwood_sum_large(const MPI_Count *counts, int length);
/* Sums of count times size, one type each. */
uint64_t sapwood_weigh(const int *counts, const MPI_Datatype *types, int length);
uint64_t sapwood_weigh_large(const MPI_Count *counts, const MPI_Datatype *types, int length);
uint64_t sapwood_weigh_fortran(const MPI_Fint *counts, const MPI_Fint *types, int length);

#endif
