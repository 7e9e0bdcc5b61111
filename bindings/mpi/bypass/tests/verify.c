/* Compares MPI_Reduce, MPI_Allreduce and MPI_Barrier with their PMPI twins: every predefined
 * operation and type, counts around the chunk bounds, roots, communicators, skew.
 *
 *   verify SEED CASES COUNTS     CASES at random, COUNTS counts for each operation and type;
 *                                prints "verified N cases" at rank 0, or names the first difference
 */
#define _GNU_SOURCE
#include <complex.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <mpi.h>

enum class { INTEGER, OTHER_INTEGER, REAL, COMPLEX, LOGICAL, BYTES, PAIR };
/* How elements are made and compared: C kind of one number. */
enum form { I8, I16, I32, I64, F32, F64, FLD, FI, DI, LDI, LI, SI, II, FF, DD };

struct type {
    const char *name;
    MPI_Datatype handle;
    enum class class;
    enum form form;
    int parts; /* numbers of that form in an element */
};

#define T(name, class, form, parts) {#name, name, class, form, parts}
static struct type types[100];
static int type_count;
static const struct {
    const char *name;
    MPI_Op handle;
    unsigned classes;
} operations[] = {
#define BIT(class) (1u << (class))
#define INTEGERS (BIT(INTEGER) | BIT(OTHER_INTEGER))
#define ARITHMETIC (INTEGERS | BIT(REAL))
    {"MAX", MPI_MAX, ARITHMETIC},
    {"MIN", MPI_MIN, ARITHMETIC},
    {"SUM", MPI_SUM, ARITHMETIC | BIT(COMPLEX)},
    {"PROD", MPI_PROD, ARITHMETIC | BIT(COMPLEX)},
    {"LAND", MPI_LAND, BIT(INTEGER) | BIT(LOGICAL)},
    {"LOR", MPI_LOR, BIT(INTEGER) | BIT(LOGICAL)},
    {"LXOR", MPI_LXOR, BIT(INTEGER) | BIT(LOGICAL)},
    {"BAND", MPI_BAND, INTEGERS | BIT(BYTES)},
    {"BOR", MPI_BOR, INTEGERS | BIT(BYTES)},
    {"BXOR", MPI_BXOR, INTEGERS | BIT(BYTES)},
    {"MINLOC", MPI_MINLOC, BIT(PAIR)},
    {"MAXLOC", MPI_MAXLOC, BIT(PAIR)},
};
enum { OPERATIONS = sizeof operations / sizeof operations[0], COUNT_MAX = 20000, EXTENT_MAX = 32 };

static int rank, size;
static uint64_t state;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void list_types(void)
{
    const struct type all[] = {
        T(MPI_SIGNED_CHAR, INTEGER, I8, 1), T(MPI_UNSIGNED_CHAR, INTEGER, I8, 1), T(MPI_SHORT, INTEGER, I16, 1),
        T(MPI_UNSIGNED_SHORT, INTEGER, I16, 1), T(MPI_INT, INTEGER, I32, 1), T(MPI_UNSIGNED, INTEGER, I32, 1),
        T(MPI_LONG, INTEGER, I64, 1), T(MPI_UNSIGNED_LONG, INTEGER, I64, 1), T(MPI_LONG_LONG_INT, INTEGER, I64, 1),
        T(MPI_UNSIGNED_LONG_LONG, INTEGER, I64, 1), T(MPI_INT8_T, INTEGER, I8, 1), T(MPI_INT16_T, INTEGER, I16, 1),
        T(MPI_INT32_T, INTEGER, I32, 1), T(MPI_INT64_T, INTEGER, I64, 1), T(MPI_UINT8_T, INTEGER, I8, 1),
        T(MPI_UINT16_T, INTEGER, I16, 1), T(MPI_UINT32_T, INTEGER, I32, 1), T(MPI_UINT64_T, INTEGER, I64, 1),
        T(MPI_AINT, OTHER_INTEGER, I64, 1), T(MPI_OFFSET, OTHER_INTEGER, I64, 1), T(MPI_COUNT, OTHER_INTEGER, I64, 1),
        T(MPI_INTEGER, OTHER_INTEGER, I32, 1), T(MPI_INTEGER1, OTHER_INTEGER, I8, 1), T(MPI_INTEGER2, OTHER_INTEGER, I16, 1),
        T(MPI_INTEGER4, OTHER_INTEGER, I32, 1), T(MPI_INTEGER8, OTHER_INTEGER, I64, 1), T(MPI_FLOAT, REAL, F32, 1),
        T(MPI_DOUBLE, REAL, F64, 1), T(MPI_LONG_DOUBLE, REAL, FLD, 1), T(MPI_REAL, REAL, F32, 1),
        T(MPI_DOUBLE_PRECISION, REAL, F64, 1), T(MPI_REAL4, REAL, F32, 1), T(MPI_REAL8, REAL, F64, 1),
        T(MPI_C_FLOAT_COMPLEX, COMPLEX, F32, 2), T(MPI_C_DOUBLE_COMPLEX, COMPLEX, F64, 2),
        T(MPI_C_LONG_DOUBLE_COMPLEX, COMPLEX, FLD, 2), T(MPI_COMPLEX, COMPLEX, F32, 2),
        T(MPI_DOUBLE_COMPLEX, COMPLEX, F64, 2), T(MPI_CXX_FLOAT_COMPLEX, COMPLEX, F32, 2),
        T(MPI_CXX_DOUBLE_COMPLEX, COMPLEX, F64, 2), T(MPI_LOGICAL, LOGICAL, I32, 1), T(MPI_C_BOOL, LOGICAL, I8, 1),
        T(MPI_CXX_BOOL, LOGICAL, I8, 1), T(MPI_BYTE, BYTES, I8, 1), T(MPI_FLOAT_INT, PAIR, FI, 1),
        T(MPI_DOUBLE_INT, PAIR, DI, 1), T(MPI_LONG_DOUBLE_INT, PAIR, LDI, 1), T(MPI_LONG_INT, PAIR, LI, 1),
        T(MPI_SHORT_INT, PAIR, SI, 1), T(MPI_2INT, PAIR, II, 1), T(MPI_2INTEGER, PAIR, II, 1),
        T(MPI_2REAL, PAIR, FF, 1), T(MPI_2DOUBLE_PRECISION, PAIR, DD, 1),
    };
    type_count = sizeof all / sizeof all[0];
    memcpy(types, all, sizeof all);
}

/* Structures as MPI lays out its pair types. */
struct fi { float value; int index; };
struct di { double value; int index; };
struct ldi { long double value; int index; };
struct li { long value; int index; };
struct si { short value; int index; };
struct ii { int value, index; };
struct ff { float value, index; };
struct dd { double value, index; };

static size_t extent_of(const struct type *type)
{
    static const size_t sizes[] = {1, 2, 4, 8, sizeof(float), sizeof(double), sizeof(long double), sizeof(struct fi),
                                   sizeof(struct di), sizeof(struct ldi), sizeof(struct li), sizeof(struct si),
                                   sizeof(struct ii), sizeof(struct ff), sizeof(struct dd)};
    return sizes[type->form] * (size_t)type->parts;
}

/* Numbers of 8 and 16 bits do not overflow: Open MPI's vector instructions saturate where its
 * other code wraps, so that its result would depend on the order. */
static uint64_t narrow(uint64_t bits, int operation)
{
    if (operations[operation].handle == MPI_SUM)
        return bits & (size > 16 ? 3 : 7);
    if (operations[operation].handle == MPI_PROD)
        return 1 + (bits & (rank < 6));
    return bits;
}

/* Small values, so that products stay finite; different at each rank. */
static void fill(const struct type *type, int operation, unsigned char *buffer, int count)
{
    for (int i = 0; i < count * type->parts; i++) {
        uint64_t bits = draw();
        double real = 0.75 + (double)(bits % 1000) / 2000.0;
        int small = (int)(bits % 7), index = (int)(bits >> 32 & 1023);
        switch (type->form) {
        case I8: ((int8_t *)buffer)[i] = type->class == LOGICAL ? (int8_t)(bits & 1) : (int8_t)narrow(bits, operation); break;
        case I16: ((int16_t *)buffer)[i] = (int16_t)narrow(bits, operation); break;
        case I32: ((int32_t *)buffer)[i] = type->class == LOGICAL ? (int32_t)(bits & 1) : (int32_t)bits; break;
        case I64: ((int64_t *)buffer)[i] = (int64_t)bits; break;
        case F32: ((float *)buffer)[i] = (float)real; break;
        case F64: ((double *)buffer)[i] = real; break;
        case FLD: ((long double *)buffer)[i] = real; break;
        case FI: ((struct fi *)buffer)[i] = (struct fi){(float)small, index}; break;
        case DI: ((struct di *)buffer)[i] = (struct di){small, index}; break;
        case LDI: ((struct ldi *)buffer)[i] = (struct ldi){small, index}; break;
        case LI: ((struct li *)buffer)[i] = (struct li){small, index}; break;
        case SI: ((struct si *)buffer)[i] = (struct si){(short)small, index}; break;
        case II: ((struct ii *)buffer)[i] = (struct ii){small, index}; break;
        case FF: ((struct ff *)buffer)[i] = (struct ff){(float)small, (float)index}; break;
        case DD: ((struct dd *)buffer)[i] = (struct dd){small, index}; break;
        }
    }
}

/* Sums and products of `size` numbers of one sign may differ by `size` roundings. */
static int close_to(long double a, long double b, long double epsilon)
{
    long double scale = fabsl(a) > fabsl(b) ? fabsl(a) : fabsl(b);
    return fabsl(a - b) <= 16.0L * (long double)size * epsilon * (scale > 1 ? scale : 1);
}

#define SAME_PAIR(kind) (((const kind *)a)[i].value == ((const kind *)b)[i].value && \
                         ((const kind *)a)[i].index == ((const kind *)b)[i].index)

static int same(const struct type *type, const unsigned char *a, const unsigned char *b, int count)
{
    for (int i = 0; i < count * type->parts; i++) {
        int equal;
        switch (type->form) {
        case F32: equal = close_to(((const float *)a)[i], ((const float *)b)[i], 1.2e-7L); break;
        case F64: equal = close_to(((const double *)a)[i], ((const double *)b)[i], 2.3e-16L); break;
        case FLD: equal = close_to(((const long double *)a)[i], ((const long double *)b)[i], 1.1e-19L); break;
        case FI: equal = SAME_PAIR(struct fi); break;
        case DI: equal = SAME_PAIR(struct di); break;
        case LDI: equal = SAME_PAIR(struct ldi); break;
        case LI: equal = SAME_PAIR(struct li); break;
        case SI: equal = SAME_PAIR(struct si); break;
        case II: equal = SAME_PAIR(struct ii); break;
        case FF: equal = SAME_PAIR(struct ff); break;
        case DD: equal = SAME_PAIR(struct dd); break;
        default: {
            size_t one = extent_of(type);
            equal = memcmp(a + (size_t)i * one, b + (size_t)i * one, one) == 0;
        }
        }
        if (!equal)
            return 0;
    }
    return 1;
}

static unsigned char *source, *ours, *again, *theirs;

static void pause_at_random(void)
{
    struct timespec skew = {0, (long)(draw() % 300) * 1000};
    nanosleep(&skew, NULL);
}

static void fail(const char *what, const struct type *type, int operation, int count, int root)
{
    printf("rank %d of %d: %s: %s %s count %d root %d\n", rank, size, what, type->name, operations[operation].name,
           count, root);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* What varies between the cases beside type, operation and count. */
struct variant {
    MPI_Comm comm;
    int root;
    int in_place, skewed, to_all;
};

/* MPICH 4.0.2 dies of MPI_IN_PLACE at a root other than 0 with large operands. */
static int may_be_in_place(const struct variant *variant, size_t bytes)
{
#if defined(MPICH_VERSION)
    return variant->in_place && (variant->to_all || variant->root == 0 || bytes <= 1024);
#else
    (void)bytes;
    return variant->in_place;
#endif
}

static void run_case(const struct type *type, int operation, int count, const struct variant *variant)
{
    int me, is_root;
    MPI_Op op = operations[operation].handle;
    size_t bytes = (size_t)count * extent_of(type);
    MPI_Comm_rank(variant->comm, &me);
    is_root = me == variant->root || variant->to_all;
    fill(type, operation, source, count);
    if (variant->skewed)
        pause_at_random();
    for (int turn = 0; turn < 2; turn++) {
        unsigned char *target = turn == 0 ? ours : again;
        int in_place = may_be_in_place(variant, bytes);
        const void *from = in_place && is_root ? MPI_IN_PLACE : source;
        if (in_place)
            memcpy(target, source, bytes);
        int code = variant->to_all ? MPI_Allreduce(from, target, count, type->handle, op, variant->comm)
                                   : MPI_Reduce(from, target, count, type->handle, op, variant->root, variant->comm);
        if (code != MPI_SUCCESS)
            fail("error", type, operation, count, variant->root);
    }
    if (variant->to_all)
        PMPI_Allreduce(source, theirs, count, type->handle, op, variant->comm);
    else
        PMPI_Reduce(source, theirs, count, type->handle, op, variant->root, variant->comm);
    if (is_root && count > 0 && !same(type, ours, theirs, count))
        fail("differs from MPI", type, operation, count, variant->root);
    if (is_root && type->class != PAIR && type->form != FLD && memcmp(ours, again, bytes) != 0)
        fail("differs between two calls", type, operation, count, variant->root);
    if (is_root && (type->class == PAIR || type->form == FLD) && !same(type, ours, again, count))
        fail("differs between two calls", type, operation, count, variant->root);
}

/* Handles that this MPI does not have are null, and some combinations it refuses. */
static int is_supported(const struct type *type, int operation)
{
    if (type->handle == MPI_DATATYPE_NULL || !(operations[operation].classes & BIT(type->class)))
        return 0;
    return PMPI_Reduce_local(source, ours, 1, type->handle, operations[operation].handle) == MPI_SUCCESS;
}

static const int counts[] = {0, 1, 3, 4, 7, 31, 32, 33, 63, 64, 65, 128, 511, 512, 513, 1000, 1023, 1024, 1025, 2049};
enum { COUNTS = sizeof counts / sizeof counts[0] };

static void every_combination(const MPI_Comm *comms, int comm_count, int counts_each)
{
    int step = 0;
    for (int t = 0; t < type_count; t++)
        for (int o = 0; o < OPERATIONS; o++) {
            if (!is_supported(&types[t], o))
                continue;
            for (int i = 0; i < counts_each; i++, step++) {
                int comm_size;
                struct variant variant = {.comm = comms[step % comm_count]};
                MPI_Comm_size(variant.comm, &comm_size);
                variant.root = step / comm_count % comm_size;
                variant.in_place = step % 3 == 0;
                variant.to_all = step % 5 == 0;
                run_case(&types[t], o, counts[(i * 5 + step) % COUNTS], &variant);
            }
        }
}

static long random_cases(const MPI_Comm *comms, int comm_count, uint64_t seed, long cases)
{
    uint64_t shared = seed;
    long done = 0;
    while (done < cases) {
        /* All ranks draw the same cases and different data. */
        uint64_t own = state;
        state = shared;
        uint64_t a = draw(), b = draw(), c = draw();
        shared = state;
        state = own;
        const struct type *type = &types[a % (uint64_t)type_count];
        int operation = (int)(a >> 20) % OPERATIONS, comm_size;
        if (operation < 0 || !is_supported(type, operation))
            continue;
        struct variant variant = {.comm = comms[b % (uint64_t)comm_count]};
        MPI_Comm_size(variant.comm, &comm_size);
        variant.root = (int)((b >> 8) % (uint64_t)comm_size);
        variant.in_place = b >> 30 & 1;
        variant.skewed = (b >> 31 & 31) == 0;
        variant.to_all = (b >> 40 & 7) == 0;
        int count = c % 40 == 0 ? (int)(c >> 10) % COUNT_MAX : c & 64 ? counts[(c >> 10) % COUNTS] : (int)(c >> 10) & 63;
        run_case(type, operation, abs(count), &variant);
        if ((b >> 50 & 15) == 0)
            MPI_Barrier(variant.comm);
        done++;
    }
    return done;
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    long cases = argc > 2 ? strtol(argv[2], NULL, 10) : 2000;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    list_types();
    size_t bytes = (size_t)COUNT_MAX * EXTENT_MAX;
    source = calloc(1, bytes);
    ours = calloc(1, bytes);
    again = calloc(1, bytes);
    theirs = calloc(1, bytes);
    state = seed * 1000003u + (uint64_t)rank * 7919u + 12345u;
    MPI_Comm comms[4] = {MPI_COMM_WORLD};
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comms[2]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[3]);
    every_combination(comms, 4, argc > 3 ? atoi(argv[3]) : 4);
    long done = random_cases(comms, 4, seed * 77777u + 1, cases);
    for (int i = 1; i < 4; i++)
        MPI_Comm_free(&comms[i]);
    if (rank == 0)
        printf("verified %ld cases\n", done);
    MPI_Finalize();
    return 0;
}
