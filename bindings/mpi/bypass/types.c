/* A table of handles, found by hashing; see types.h. */
#define _GNU_SOURCE
#include "types.h"

#include <stddef.h>

#include "calls.h"

/* The classes of MPI's own table of operations and types (MPI 4.0, 6.9.2). The library is
 * not asked beyond it: MPICH has combinations that it accepts and then asserts against. */
enum class { C_INTEGER, FORTRAN_INTEGER, ADDRESS, FLOATING, COMPLEX, LOGICAL, BYTES, PAIR };
#define IS(class) (1u << (class))
#define NUMBERS (IS(C_INTEGER) | IS(FORTRAN_INTEGER) | IS(ADDRESS))
#define ORDERED (NUMBERS | IS(FLOATING))
#define TRUTHS (IS(C_INTEGER) | IS(LOGICAL))
#define BITS (NUMBERS | IS(BYTES))

/* MPI's name, Open MPI's variable, class. */
#define TYPES(X) \
    X(MPI_BYTE, ompi_mpi_byte, BYTES) \
    X(MPI_SHORT, ompi_mpi_short, C_INTEGER) \
    X(MPI_INT, ompi_mpi_int, C_INTEGER) \
    X(MPI_LONG, ompi_mpi_long, C_INTEGER) \
    X(MPI_FLOAT, ompi_mpi_float, FLOATING) \
    X(MPI_DOUBLE, ompi_mpi_double, FLOATING) \
    X(MPI_LONG_DOUBLE, ompi_mpi_long_double, FLOATING) \
    X(MPI_UNSIGNED_CHAR, ompi_mpi_unsigned_char, C_INTEGER) \
    X(MPI_SIGNED_CHAR, ompi_mpi_signed_char, C_INTEGER) \
    X(MPI_UNSIGNED_SHORT, ompi_mpi_unsigned_short, C_INTEGER) \
    X(MPI_UNSIGNED_LONG, ompi_mpi_unsigned_long, C_INTEGER) \
    X(MPI_UNSIGNED, ompi_mpi_unsigned, C_INTEGER) \
    X(MPI_FLOAT_INT, ompi_mpi_float_int, PAIR) \
    X(MPI_DOUBLE_INT, ompi_mpi_double_int, PAIR) \
    X(MPI_LONG_DOUBLE_INT, ompi_mpi_longdbl_int, PAIR) \
    X(MPI_LONG_INT, ompi_mpi_long_int, PAIR) \
    X(MPI_SHORT_INT, ompi_mpi_short_int, PAIR) \
    X(MPI_2INT, ompi_mpi_2int, PAIR) \
    X(MPI_LONG_LONG_INT, ompi_mpi_long_long_int, C_INTEGER) \
    X(MPI_UNSIGNED_LONG_LONG, ompi_mpi_unsigned_long_long, C_INTEGER) \
    X(MPI_LOGICAL, ompi_mpi_logical, LOGICAL) \
    X(MPI_INTEGER, ompi_mpi_integer, FORTRAN_INTEGER) \
    X(MPI_INTEGER1, ompi_mpi_integer1, FORTRAN_INTEGER) \
    X(MPI_INTEGER2, ompi_mpi_integer2, FORTRAN_INTEGER) \
    X(MPI_INTEGER4, ompi_mpi_integer4, FORTRAN_INTEGER) \
    X(MPI_INTEGER8, ompi_mpi_integer8, FORTRAN_INTEGER) \
    X(MPI_INTEGER16, ompi_mpi_integer16, FORTRAN_INTEGER) \
    X(MPI_REAL, ompi_mpi_real, FLOATING) \
    X(MPI_REAL4, ompi_mpi_real4, FLOATING) \
    X(MPI_REAL8, ompi_mpi_real8, FLOATING) \
    X(MPI_REAL16, ompi_mpi_real16, FLOATING) \
    X(MPI_DOUBLE_PRECISION, ompi_mpi_dblprec, FLOATING) \
    X(MPI_COMPLEX, ompi_mpi_cplex, COMPLEX) \
    X(MPI_COMPLEX8, ompi_mpi_complex8, COMPLEX) \
    X(MPI_COMPLEX16, ompi_mpi_complex16, COMPLEX) \
    X(MPI_COMPLEX32, ompi_mpi_complex32, COMPLEX) \
    X(MPI_DOUBLE_COMPLEX, ompi_mpi_dblcplex, COMPLEX) \
    X(MPI_2REAL, ompi_mpi_2real, PAIR) \
    X(MPI_2DOUBLE_PRECISION, ompi_mpi_2dblprec, PAIR) \
    X(MPI_2INTEGER, ompi_mpi_2integer, PAIR) \
    X(MPI_INT8_T, ompi_mpi_int8_t, C_INTEGER) \
    X(MPI_UINT8_T, ompi_mpi_uint8_t, C_INTEGER) \
    X(MPI_INT16_T, ompi_mpi_int16_t, C_INTEGER) \
    X(MPI_UINT16_T, ompi_mpi_uint16_t, C_INTEGER) \
    X(MPI_INT32_T, ompi_mpi_int32_t, C_INTEGER) \
    X(MPI_UINT32_T, ompi_mpi_uint32_t, C_INTEGER) \
    X(MPI_INT64_T, ompi_mpi_int64_t, C_INTEGER) \
    X(MPI_UINT64_T, ompi_mpi_uint64_t, C_INTEGER) \
    X(MPI_AINT, ompi_mpi_aint, ADDRESS) \
    X(MPI_OFFSET, ompi_mpi_offset, ADDRESS) \
    X(MPI_C_BOOL, ompi_mpi_c_bool, LOGICAL) \
    X(MPI_C_FLOAT_COMPLEX, ompi_mpi_c_float_complex, COMPLEX) \
    X(MPI_C_DOUBLE_COMPLEX, ompi_mpi_c_double_complex, COMPLEX) \
    X(MPI_C_LONG_DOUBLE_COMPLEX, ompi_mpi_c_long_double_complex, COMPLEX) \
    X(MPI_CXX_BOOL, ompi_mpi_cxx_bool, LOGICAL) \
    X(MPI_CXX_FLOAT_COMPLEX, ompi_mpi_cxx_cplex, COMPLEX) \
    X(MPI_CXX_DOUBLE_COMPLEX, ompi_mpi_cxx_dblcplex, COMPLEX) \
    X(MPI_CXX_LONG_DOUBLE_COMPLEX, ompi_mpi_cxx_ldblcplex, COMPLEX) \
    X(MPI_COUNT, ompi_mpi_count, ADDRESS)

#define TYPES_OF_OPENMPI(X) \
    X(MPI_LOGICAL1, ompi_mpi_logical1, LOGICAL) \
    X(MPI_LOGICAL2, ompi_mpi_logical2, LOGICAL) \
    X(MPI_LOGICAL4, ompi_mpi_logical4, LOGICAL) \
    X(MPI_LOGICAL8, ompi_mpi_logical8, LOGICAL)

#define OPERATIONS(X) \
    X(MPI_MAX, ompi_mpi_op_max, ORDERED) \
    X(MPI_MIN, ompi_mpi_op_min, ORDERED) \
    X(MPI_SUM, ompi_mpi_op_sum, ORDERED | IS(COMPLEX)) \
    X(MPI_PROD, ompi_mpi_op_prod, ORDERED | IS(COMPLEX)) \
    X(MPI_LAND, ompi_mpi_op_land, TRUTHS) \
    X(MPI_BAND, ompi_mpi_op_band, BITS) \
    X(MPI_LOR, ompi_mpi_op_lor, TRUTHS) \
    X(MPI_BOR, ompi_mpi_op_bor, BITS) \
    X(MPI_LXOR, ompi_mpi_op_lxor, TRUTHS) \
    X(MPI_BXOR, ompi_mpi_op_bxor, BITS) \
    X(MPI_MINLOC, ompi_mpi_op_minloc, IS(PAIR)) \
    X(MPI_MAXLOC, ompi_mpi_op_maxloc, IS(PAIR))

enum { PLACES = 512, TYPES_MAX = 128, OPERATIONS_MAX = 16, EXTENT_MAX = 64 };

static struct bypass_type types[TYPES_MAX];
static int type_count;
static MPI_Op operations[OPERATIONS_MAX];
static uint32_t classes[OPERATIONS_MAX];
static int operation_count;
/* Number of the type plus one. */
static uint8_t places[PLACES];

static unsigned place_of(MPI_Datatype handle)
{
    return (unsigned)((uint64_t)(uintptr_t)handle * UINT64_C(0x9e3779b97f4a7c15) >> 40) % PLACES;
}

/* Optional types may be known by name only. */
static bool accepts(MPI_Op operation, MPI_Datatype type)
{
    _Alignas(64) unsigned char in[EXTENT_MAX] = {0}, inout[EXTENT_MAX] = {0};
    return bypass_calls.Reduce_local(in, inout, 0, type, operation) == MPI_SUCCESS;
}

static void learn_type(MPI_Datatype handle, enum class class)
{
    MPI_Aint lower = 0, extent = 0;
    if ((uintptr_t)handle == 0 || handle == sapwood_library.type_null || bypass_type_of(handle) != NULL ||
        bypass_calls.Type_get_extent(handle, &lower, &extent) != MPI_SUCCESS || lower != 0 || extent <= 0 ||
        extent > EXTENT_MAX)
        return;
    struct bypass_type *type = &types[type_count];
    *type = (struct bypass_type){.handle = handle, .extent = (uint32_t)extent};
    for (int i = 0; i < operation_count; i++)
        if ((classes[i] & IS(class)) != 0 && accepts(operations[i], handle))
            type->operations |= 1u << i;
    unsigned place = place_of(handle);
    while (places[place] != 0)
        place = (place + 1) % PLACES;
    places[place] = (uint8_t)++type_count;
}

#if defined(SAPWOOD_FOR_OPENMPI)
#define HANDLE(name, variable) (void *)sapwood_symbol(#variable)
#else
#define HANDLE(name, variable) name
#endif
#define LEARN_OPERATION(name, variable, of_classes) \
    classes[operation_count] = of_classes;         \
    operations[operation_count++] = HANDLE(name, variable);
#define LEARN_TYPE(name, variable, class) learn_type(HANDLE(name, variable), class);

void bypass_types_learn(void)
{
    /* Refused combinations raise errors on one of the two, by version of MPI. */
    MPI_Comm raised[2] = {bypass_calls.comm_world, bypass_calls.comm_self};
    MPI_Errhandler kept[2];
    for (int i = 0; i < 2; i++) {
        bypass_calls.Comm_get_errhandler(raised[i], &kept[i]);
        bypass_calls.Comm_set_errhandler(raised[i], bypass_calls.errors_return);
    }
    OPERATIONS(LEARN_OPERATION)
    TYPES(LEARN_TYPE)
#if defined(SAPWOOD_FOR_OPENMPI)
    TYPES_OF_OPENMPI(LEARN_TYPE)
#endif
    for (int i = 0; i < 2; i++) {
        bypass_calls.Comm_set_errhandler(raised[i], kept[i]);
        bypass_calls.Errhandler_free(&kept[i]);
    }
}

const struct bypass_type *bypass_type_of(MPI_Datatype handle)
{
    for (unsigned place = place_of(handle); places[place] != 0; place = (place + 1) % PLACES)
        if (types[places[place] - 1].handle == handle)
            return &types[places[place] - 1];
    return NULL;
}

int bypass_operation_of(MPI_Op handle)
{
    for (int i = 0; i < operation_count; i++)
        if (operations[i] == handle)
            return i;
    return -1;
}
