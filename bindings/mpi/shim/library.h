/* The program's MPI library, found at run time and called by its PMPI_ names.
 *
 * The shim is not linked to MPI: it is preloaded into shells and launchers too,
 * where no MPI library exists, and in Python the library may be outside the
 * global scope. So every name is looked up when first needed, and no MPI data
 * symbol (Open MPI's handles) is ever referred to by the linker.
 */
#ifndef SAPWOOD_LIBRARY_H
#define SAPWOOD_LIBRARY_H

#include <stdbool.h>

#include <mpi.h>

#include "table.h"
#include "visibility.h"

#if defined(SAPWOOD_FOR_OPENMPI)
#define SAPWOOD_ABI SAPWOOD_ABI_OPENMPI
#elif defined(SAPWOOD_FOR_MPICH)
#define SAPWOOD_ABI SAPWOOD_ABI_MPICH
#elif defined(SAPWOOD_FOR_ABI)
#define SAPWOOD_ABI SAPWOOD_ABI_STANDARD
/* The ABI has C alone; no wrapper of this shim is Fortran's. */
typedef int MPI_Fint;
#define PMPI_Comm_f2c PMPI_Comm_fromint
#define PMPI_Type_f2c PMPI_Type_fromint
#define PMPI_Request_f2c PMPI_Request_fromint
#define PMPI_Message_f2c PMPI_Message_fromint
#else
#error "define SAPWOOD_FOR_OPENMPI, SAPWOOD_FOR_MPICH or SAPWOOD_FOR_ABI"
#endif

/* What the shim itself asks of MPI. */
struct sapwood_library {
    __typeof__(PMPI_Initialized) *initialized;
    __typeof__(PMPI_Finalized) *finalized;
    __typeof__(PMPI_Query_thread) *query_thread;
    __typeof__(PMPI_Comm_rank) *comm_rank;
    __typeof__(PMPI_Comm_size) *comm_size;
    __typeof__(PMPI_Comm_remote_size) *comm_remote_size;
    __typeof__(PMPI_Comm_test_inter) *comm_test_inter;
    __typeof__(PMPI_Topo_test) *topo_test;
    __typeof__(PMPI_Cartdim_get) *cartdim_get;
    __typeof__(PMPI_Graph_neighbors_count) *graph_neighbors_count;
    __typeof__(PMPI_Dist_graph_neighbors_count) *dist_graph_neighbors_count;
    __typeof__(PMPI_Type_size_x) *type_size_x;
    __typeof__(PMPI_Comm_group) *comm_group;
    __typeof__(PMPI_Comm_remote_group) *comm_remote_group;
    __typeof__(PMPI_Comm_get_name) *comm_get_name;
    __typeof__(PMPI_Comm_get_parent) *comm_get_parent;
    __typeof__(PMPI_Comm_create_keyval) *comm_create_keyval;
    __typeof__(PMPI_Comm_set_attr) *comm_set_attr;
    __typeof__(PMPI_Group_translate_ranks) *group_translate_ranks;
    __typeof__(PMPI_Group_free) *group_free;
    __typeof__(PMPI_Error_class) *error_class;
    MPI_Comm comm_world;
    MPI_Comm comm_self;
    MPI_Comm comm_null;
    MPI_Datatype type_null;
    MPI_Request request_null;
#if !defined(SAPWOOD_FOR_MPICH)
    MPI_Request request_empty; /* Open MPI's, whatever its ABI; NULL for others */
#endif
#if defined(SAPWOOD_FOR_ABI)
    bool has_mpich_handles;
    bool has_mpich_status; /* the count is where MPICH has it, by a trial */
    __typeof__(PMPI_Get_count_c) *get_count_c;
    __typeof__(PMPI_Test_cancelled) *test_cancelled;
#endif
    MPI_Message message_no_proc;
#if !defined(SAPWOOD_FOR_MPICH)
    __typeof__(PMPI_Comm_f2c) *comm_f2c;
    __typeof__(PMPI_Type_f2c) *type_f2c;
    __typeof__(PMPI_Request_f2c) *request_f2c;
    __typeof__(PMPI_Message_f2c) *message_f2c;
#endif
    /* Fortran's MPI_IN_PLACE: the address of a variable, NULL if Fortran is absent. */
    const void *fortran_in_place;
    /* The same of MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE, where its wrappers see them. */
    const void *fortran_status_ignore;
    const void *fortran_statuses_ignore;
};
extern SAPWOOD_HIDDEN struct sapwood_library sapwood_library;

/* The address of a symbol of the MPI library, NULL if it has none. */
void *sapwood_symbol(const char *name);

/* The same, of libraries outside of the global scope only. */
void *sapwood_symbol_in_loaded_libraries(const char *name);

/* Whether this process has a shared library of MPI. Allocates nothing. */
bool sapwood_is_mpi_loaded(void);

/* sapwood_symbol for the wrappers: a missing function becomes one that says so and
 * returns MPI_ERR_OTHER. */
void *sapwood_next(const char *name);

/* Fills sapwood_library. A program of another MPI ends here with one line and
 * exit code 2, because its handles cannot pass through these wrappers. */
void sapwood_library_open(void);

/* MPI has been initialised: learns where a status of the standard's ABI has its count. */
void sapwood_library_try(void);

static inline MPI_Comm sapwood_comm_f2c(const void *comm)
{
#if !defined(SAPWOOD_FOR_MPICH)
    return sapwood_library.comm_f2c(*(const MPI_Fint *)comm);
#else
    return PMPI_Comm_f2c(*(const MPI_Fint *)comm);
#endif
}

static inline MPI_Datatype sapwood_type_f2c(const void *type)
{
#if !defined(SAPWOOD_FOR_MPICH)
    return sapwood_library.type_f2c(*(const MPI_Fint *)type);
#else
    return PMPI_Type_f2c(*(const MPI_Fint *)type);
#endif
}

static inline MPI_Request sapwood_request_f2c(const void *request)
{
#if !defined(SAPWOOD_FOR_MPICH)
    return sapwood_library.request_f2c(*(const MPI_Fint *)request);
#else
    return PMPI_Request_f2c(*(const MPI_Fint *)request);
#endif
}

static inline MPI_Message sapwood_message_f2c(const void *message)
{
#if !defined(SAPWOOD_FOR_MPICH)
    return sapwood_library.message_f2c(*(const MPI_Fint *)message);
#else
    return PMPI_Message_f2c(*(const MPI_Fint *)message);
#endif
}

/* Of a handle of MPICH: its two highest bits tell where its object is; 01 for built-in ones. */
static inline bool sapwood_is_built_in(uint32_t handle)
{
    return handle >> 30 == 1;
}

/* Whether MPI may give this handle to several requests at once, all of which had completed when they
 * were made: small sends, collectives that move nothing or are of one process. Which one of them a
 * call is given cannot be told. */
static inline bool sapwood_request_is_shared(MPI_Request request)
{
#if defined(SAPWOOD_FOR_OPENMPI)
    return request == sapwood_library.request_empty;
#elif defined(SAPWOOD_FOR_MPICH)
    return sapwood_is_built_in((uint32_t)request);
#else
    if (sapwood_library.has_mpich_handles)
        return (uintptr_t)request <= UINT32_MAX && sapwood_is_built_in((uint32_t)(uintptr_t)request);
    return request == sapwood_library.request_empty;
#endif
}

static inline bool sapwood_fortran_in_place(const void *buffer)
{
    return buffer != NULL && buffer == sapwood_library.fortran_in_place;
}

#endif
