/* Symbol look-up for the bypass; see calls.h. */
#define _GNU_SOURCE
#include "calls.h"

#include <pthread.h>

struct bypass_calls bypass_calls;

#define FIND(name) bypass_calls.name = (__typeof__(bypass_calls.name))sapwood_next("PMPI_" #name);

static void find_all(void)
{
    sapwood_library_open();
    BYPASS_CALLS(FIND)
#if defined(SAPWOOD_FOR_MPICH)
    FIND(Reduce_c)
    FIND(Allreduce_c)
    bypass_calls.comm_world = MPI_COMM_WORLD;
    bypass_calls.comm_self = MPI_COMM_SELF;
    bypass_calls.comm_null = MPI_COMM_NULL;
    bypass_calls.type_int = MPI_INT;
    bypass_calls.type_byte = MPI_BYTE;
    bypass_calls.op_min = MPI_MIN;
    bypass_calls.errors_return = MPI_ERRORS_RETURN;
#else
    FIND(Comm_f2c)
    FIND(Type_f2c)
    FIND(Op_f2c)
    bypass_calls.comm_world = sapwood_symbol("ompi_mpi_comm_world");
    bypass_calls.comm_self = sapwood_symbol("ompi_mpi_comm_self");
    bypass_calls.comm_null = sapwood_symbol("ompi_mpi_comm_null");
    bypass_calls.type_int = sapwood_symbol("ompi_mpi_int");
    bypass_calls.type_byte = sapwood_symbol("ompi_mpi_byte");
    bypass_calls.op_min = sapwood_symbol("ompi_mpi_op_min");
    bypass_calls.errors_return = sapwood_symbol("ompi_mpi_errors_return");
#endif
}

void bypass_calls_open(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_all);
}
