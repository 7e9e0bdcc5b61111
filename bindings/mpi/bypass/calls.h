/* The functions and handles of the program's MPI library that the bypass uses.
 *
 * As in the shims nothing is linked: every name is looked up at the first MPI
 * call (../shim/library.h says why), Open MPI's handles too, which are addresses
 * of its variables.
 */
#ifndef SAPWOOD_BYPASS_CALLS_H
#define SAPWOOD_BYPASS_CALLS_H

#include <stdbool.h>

#include "library.h"

#define BYPASS_CALLS(X)                                                                                     \
    X(Init) X(Init_thread) X(Initialized) X(Finalize) X(Reduce) X(Allreduce) X(Barrier) X(Bcast)            \
    X(Reduce_local) X(Comm_rank) X(Comm_size) X(Comm_test_inter) X(Comm_group) X(Group_free)                \
    X(Group_translate_ranks) X(Comm_create_keyval) X(Comm_set_attr) X(Comm_get_attr)                        \
    X(Comm_call_errhandler) X(Comm_get_errhandler) X(Comm_set_errhandler) X(Errhandler_free)                \
    X(Type_get_extent) X(Iprobe) X(Query_thread)

#define BYPASS_MEMBER(name) __typeof__(PMPI_##name) *name;
struct bypass_calls {
    BYPASS_CALLS(BYPASS_MEMBER)
#if defined(SAPWOOD_FOR_MPICH)
    __typeof__(PMPI_Reduce_c) *Reduce_c;
    __typeof__(PMPI_Allreduce_c) *Allreduce_c;
#else
    __typeof__(PMPI_Comm_f2c) *Comm_f2c;
    __typeof__(PMPI_Type_f2c) *Type_f2c;
    __typeof__(PMPI_Op_f2c) *Op_f2c;
#endif
    MPI_Comm comm_world, comm_self, comm_null;
    MPI_Datatype type_int, type_byte;
    MPI_Op op_min;
    MPI_Errhandler errors_return;
};
extern SAPWOOD_HIDDEN struct bypass_calls bypass_calls;

/* Fills bypass_calls once; any thread may ask at any time. A program of the other
 * MPI ends here with one line and exit code 2. */
void bypass_calls_open(void);

#endif
