/* The names that the program calls. Fortran ones are wrapped where the installed
 * bindings call PMPI_ names, which the C wrappers do not see: all of Open MPI's; of
 * MPICH's, those of mpi_f08 without a choice buffer. */
#define _GNU_SOURCE
#include <stdatomic.h>

#include "collect.h"
#include "life.h"

/* Counts the call and asks the MPI library, which also names bad arguments. */
#define OR_ELSE(call, else_) \
    int outcome = MPI_SUCCESS; \
    bypass_calls_open(); \
    return bypass_collect(&(struct bypass_call)call, &outcome) ? outcome : else_
#define BRACED(...) {__VA_ARGS__}

#define REDUCTION(kind_, root_) \
    BRACED(.kind = kind_, .source = sendbuf, .target = recvbuf, .count = count, .type = datatype, .operation = op, \
           .root = root_, .comm = comm)

SAPWOOD_EXPORT int MPI_Reduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                              int root, MPI_Comm comm)
{
    OR_ELSE(REDUCTION(BYPASS_REDUCE, root), bypass_calls.Reduce(sendbuf, recvbuf, count, datatype, op, root, comm));
}

SAPWOOD_EXPORT int MPI_Allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                                 MPI_Comm comm)
{
    OR_ELSE(REDUCTION(BYPASS_ALLREDUCE, 0), bypass_calls.Allreduce(sendbuf, recvbuf, count, datatype, op, comm));
}

SAPWOOD_EXPORT int MPI_Barrier(MPI_Comm comm)
{
    OR_ELSE(BRACED(.kind = BYPASS_BARRIER, .comm = comm), bypass_calls.Barrier(comm));
}

SAPWOOD_EXPORT int MPI_Init(int *argc, char ***argv)
{
    bypass_init_begins();
    int outcome = bypass_calls.Init(argc, argv);
    bypass_init_ends(outcome == MPI_SUCCESS);
    return outcome;
}

SAPWOOD_EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    bypass_init_begins();
    int outcome = bypass_calls.Init_thread(argc, argv, required, provided);
    bypass_init_ends(outcome == MPI_SUCCESS);
    return outcome;
}

SAPWOOD_EXPORT int MPI_Finalize(void)
{
    bypass_calls_open();
    bypass_finalize();
    return bypass_calls.Finalize();
}

#if defined(SAPWOOD_FOR_MPICH)
SAPWOOD_EXPORT int MPI_Reduce_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                                int root, MPI_Comm comm)
{
    OR_ELSE(REDUCTION(BYPASS_REDUCE, root), bypass_calls.Reduce_c(sendbuf, recvbuf, count, datatype, op, root, comm));
}

SAPWOOD_EXPORT int MPI_Allreduce_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                                   MPI_Op op, MPI_Comm comm)
{
    OR_ELSE(REDUCTION(BYPASS_ALLREDUCE, 0), bypass_calls.Allreduce_c(sendbuf, recvbuf, count, datatype, op, comm));
}
#endif

static void *next_of(void *_Atomic *known, const char *name)
{
    void *next = atomic_load_explicit(known, memory_order_relaxed);
    if (next == NULL) {
        next = sapwood_next(name);
        atomic_store_explicit(known, next, memory_order_relaxed);
    }
    return next;
}
/* The Fortran function behind a wrapper; all arguments are addresses. */
#define NEXT(function, name) ((__typeof__(function) *)({ static void *_Atomic known; next_of(&known, name); }))

#define FORTRAN_LIFE(init, init_next, init_thread, init_thread_next, finalize, finalize_next) \
    void init(MPI_Fint *error); \
    void init_thread(MPI_Fint *required, MPI_Fint *provided, MPI_Fint *error); \
    void finalize(MPI_Fint *error); \
    SAPWOOD_EXPORT void init(MPI_Fint *error) \
    { \
        MPI_Fint own = 0; \
        bypass_init_begins(); \
        NEXT(init, init_next)(error != NULL ? error : &own); \
        bypass_init_ends((error != NULL ? *error : own) == MPI_SUCCESS); \
    } \
    SAPWOOD_EXPORT void init_thread(MPI_Fint *required, MPI_Fint *provided, MPI_Fint *error) \
    { \
        MPI_Fint own = 0; \
        bypass_init_begins(); \
        NEXT(init_thread, init_thread_next)(required, provided, error != NULL ? error : &own); \
        bypass_init_ends((error != NULL ? *error : own) == MPI_SUCCESS); \
    } \
    SAPWOOD_EXPORT void finalize(MPI_Fint *error) \
    { \
        bypass_calls_open(); \
        bypass_finalize(); \
        NEXT(finalize, finalize_next)(error); \
    }

#if defined(SAPWOOD_FOR_MPICH)
FORTRAN_LIFE(mpi_init_f08_, "pmpir_init_f08_", mpi_init_thread_f08_, "pmpir_init_thread_f08_", mpi_finalize_f08_,
             "pmpir_finalize_f08_")
#else
FORTRAN_LIFE(mpi_init_, "pmpi_init_", mpi_init_thread_, "pmpi_init_thread_", mpi_finalize_, "pmpi_finalize_")
FORTRAN_LIFE(mpi_init_f08_, "pmpi_init_f08_", mpi_init_thread_f08_, "pmpi_init_thread_f08_", mpi_finalize_f08_,
             "pmpi_finalize_f08_")

static const void *c_buffer(const void *buffer)
{
    return sapwood_fortran_in_place(buffer) ? MPI_IN_PLACE : buffer;
}

#define FORTRAN_REDUCTION(kind_, root_) \
    int outcome = MPI_SUCCESS; \
    bypass_calls_open(); \
    const struct bypass_call call = { \
        .kind = kind_, \
        .source = c_buffer(sendbuf), \
        .target = (void *)c_buffer(recvbuf), \
        .count = *count, \
        .type = bypass_calls.Type_f2c(*datatype), \
        .operation = bypass_calls.Op_f2c(*op), \
        .root = root_, \
        .comm = bypass_calls.Comm_f2c(*comm), \
    }; \
    bool taken = bypass_collect(&call, &outcome); \
    if (taken && error != NULL) \
        *error = outcome; \
    if (taken) \
        return

#define FORTRAN_WRAPPERS(reduce, allreduce, barrier) \
    void reduce(void *sendbuf, void *recvbuf, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *op, MPI_Fint *root, \
                MPI_Fint *comm, MPI_Fint *error); \
    SAPWOOD_EXPORT void reduce(void *sendbuf, void *recvbuf, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *op, \
                               MPI_Fint *root, MPI_Fint *comm, MPI_Fint *error) \
    { \
        FORTRAN_REDUCTION(BYPASS_REDUCE, *root); \
        NEXT(reduce, "p" #reduce)(sendbuf, recvbuf, count, datatype, op, root, comm, error); \
    } \
    void allreduce(void *sendbuf, void *recvbuf, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *op, MPI_Fint *comm, \
                   MPI_Fint *error); \
    SAPWOOD_EXPORT void allreduce(void *sendbuf, void *recvbuf, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *op, \
                                  MPI_Fint *comm, MPI_Fint *error) \
    { \
        FORTRAN_REDUCTION(BYPASS_ALLREDUCE, 0); \
        NEXT(allreduce, "p" #allreduce)(sendbuf, recvbuf, count, datatype, op, comm, error); \
    } \
    void barrier(MPI_Fint *comm, MPI_Fint *error); \
    SAPWOOD_EXPORT void barrier(MPI_Fint *comm, MPI_Fint *error) \
    { \
        int outcome = MPI_SUCCESS; \
        bypass_calls_open(); \
        const struct bypass_call call = {.kind = BYPASS_BARRIER, .comm = bypass_calls.Comm_f2c(*comm)}; \
        if (!bypass_collect(&call, &outcome)) \
            NEXT(barrier, "p" #barrier)(comm, error); \
        else if (error != NULL) \
            *error = outcome; \
    }

FORTRAN_WRAPPERS(mpi_reduce_, mpi_allreduce_, mpi_barrier_)
FORTRAN_WRAPPERS(mpi_reduce_f08_, mpi_allreduce_f08_, mpi_barrier_f08_)
#endif
