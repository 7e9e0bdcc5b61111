/* See sizes.h. Everything here runs inside a counted call of this thread, with handles that are
 * known to be good: the program's own call has succeeded, or they are MPI's. */
#include "sizes.h"

#include "events.h"
#include "extras.h"
#include "names.h"
#include "observe.h"
#include "places.h"

_Atomic uint64_t sapwood_classes[SAPWOOD_CACHE_WORDS];
_Atomic uint64_t sapwood_sizes[SAPWOOD_CACHE_WORDS];

static_assert(sizeof(MPI_Fint) == sizeof(int), "Fortran counts are read as C ints");

/* Larger handles or values are not cached but asked for each time. */
#define HANDLE_MAX (UINT64_C(1) << 48)
enum { CACHED_SIZE_MAX = 0xffff };

/* In the place of a handle while another one takes its place in the table. */
#define CHANGES UINT64_MAX

/* No handle has this bit. */
#define OF_NONE (UINT64_C(1) << 63)

/* Of basic types what never leaves: a call that has only begun may ask MPI nothing. */
enum { BASIC_TYPES_MAX = 16 };
static struct {
    uint64_t handle;
    uint64_t size;
} basic_types[BASIC_TYPES_MAX];

/* What the table tells of a communicator, window or file beside its name. */
struct kind {
    unsigned class;
    bool between; /* it has two groups */
};

/* The place of a handle in the table, or of 0 a free one; NULL if there is none. Readers look at all places, too. */
static struct sapwood_communicator *place_with(uint64_t handle, unsigned first)
{
    for (unsigned tries = 0; tries < SAPWOOD_COMMUNICATORS; tries++) {
        struct sapwood_communicator *place = &sapwood_table->communicators[(first + tries) % SAPWOOD_COMMUNICATORS];
        if (atomic_load_explicit(&place->handle, memory_order_relaxed) == handle)
            return place;
    }
    return NULL;
}

/* A communicator loses its place in the table: at its next call it is asked for anew, and takes its turn. */
static void forget_class(uint64_t handle)
{
    _Atomic uint64_t *known = &sapwood_classes[sapwood_cache_place(handle)];
    if (atomic_load_explicit(known, memory_order_relaxed) >> 8 == handle)
        atomic_store_explicit(known, 0, memory_order_relaxed);
}

/* The name that the program has given it, as its space has it; 0 none. Callers hold the lock. */
static uint32_t name_in_space(uint64_t handle)
{
    const struct sapwood_space *space = sapwood_events == NULL ? NULL : sapwood_place_of(handle);
    return space == NULL ? 0 : atomic_load_explicit(&space->name, memory_order_relaxed);
}

/* Its place in the table, made its own. Once all are taken, two that begin their search at one place take turns.
 * Callers hold the lock: two threads would mix what they tell. */
static struct sapwood_communicator *communicator_of(uint64_t handle, struct kind kind)
{
    unsigned first = sapwood_cache_place(handle);
    struct sapwood_communicator *place = place_with(handle, first);
    if (place == NULL) {
        place = place_with(0, first);
        if (place == NULL) {
            place = &sapwood_table->communicators[first];
            forget_class(atomic_load_explicit(&place->handle, memory_order_relaxed));
        }
        SAPWOOD_TELL(place->handle, 0);
        SAPWOOD_TELL(place->again, CHANGES);
        /* A reader that has copied one of the words that follow behind the former handle sees that it has changed. */
        atomic_thread_fence(memory_order_release);
        SAPWOOD_TELL(place->name, name_in_space(handle));
    }
    SAPWOOD_TELL(place->class, kind.class);
    SAPWOOD_TELL(place->between, kind.between);
    atomic_store_explicit(&place->again, handle, memory_order_release);
    atomic_store_explicit(&place->handle, handle, memory_order_release);
    return place;
}

static bool is_between(MPI_Comm comm)
{
    int between = 0;
    sapwood_library.comm_test_inter(comm, &between);
    return between != 0;
}

unsigned sapwood_class_asked(MPI_Comm comm)
{
    int size = 0;
    if (comm == sapwood_library.comm_null || sapwood_library.comm_size(comm, &size) != MPI_SUCCESS || size < 1)
        return SAPWOOD_CLASS_NONE;
    unsigned class = sapwood_class_of_size((unsigned)size);
    uint64_t handle = SAPWOOD_HANDLE(comm);
    if (handle < HANDLE_MAX)
        atomic_store_explicit(&sapwood_classes[sapwood_cache_place(handle)], handle << 8 | class,
                              memory_order_relaxed);
    struct kind kind = {.class = class, .between = is_between(comm)};
    sapwood_table_lock();
    communicator_of(handle, kind);
    sapwood_table_unlock();
    return class;
}

/* Gives a communicator, window or file its name, in the table and in its space; whether there was room for it. */
static bool name_handle(uint64_t handle, struct kind kind, const char *name, size_t length)
{
    sapwood_table_lock();
    uint32_t kept = sapwood_name_kept(name, length);
    /* Of a window or file the table tells nothing but the name. */
    if (kept == 0 && kind.class == SAPWOOD_CLASS_NONE)
        sapwood_forget_name(handle);
    else
        SAPWOOD_TELL(communicator_of(handle, kind)->name, kept);
    struct sapwood_space *space = sapwood_events == NULL ? NULL : sapwood_place_of(handle);
    if (space != NULL)
        sapwood_name_held(space, kept);
    sapwood_table_unlock();
    return kept != 0;
}

bool sapwood_has_name(uint64_t handle)
{
    const struct sapwood_communicator *place = place_with(handle, sapwood_cache_place(handle));
    return place != NULL && atomic_load_explicit(&place->name, memory_order_relaxed) != 0;
}

bool sapwood_name_handle(uint64_t handle, const char *name, size_t length)
{
    return name_handle(handle, (struct kind){.class = SAPWOOD_CLASS_NONE}, name, length);
}

void sapwood_name_comm(MPI_Comm comm, const char *name, size_t length)
{
    struct kind kind = {.class = sapwood_class(comm), .between = is_between(comm)};
    sapwood_space_seen(comm);
    name_handle(SAPWOOD_HANDLE(comm), kind, name, length);
    /* Calls from now on are tallied under the new name. */
    sapwood_extras_forget(comm);
}

uint64_t sapwood_size_asked(MPI_Datatype type)
{
    MPI_Count size = 0;
    if (type == sapwood_library.type_null || sapwood_library.type_size_x(type, &size) != MPI_SUCCESS || size < 0)
        return 0;
    uint64_t handle = SAPWOOD_HANDLE(type);
    if (handle < HANDLE_MAX && size <= CACHED_SIZE_MAX)
        atomic_store_explicit(&sapwood_sizes[sapwood_cache_place(handle)], handle << 16 | (uint64_t)size,
                              memory_order_relaxed);
    return (uint64_t)size;
}

uint64_t sapwood_bytes_asked(int64_t count, MPI_Datatype type)
{
    return sapwood_bytes(count, type);
}

/* What is not an address in the library is a constant of mpi.h. */
#if defined(SAPWOOD_FOR_OPENMPI)
#define BASIC_TYPE(type, symbol) ((MPI_Datatype)sapwood_symbol(symbol))
#else
#define BASIC_TYPE(type, symbol) (type)
#endif

void sapwood_sizes_begin(void)
{
    /* Two of one place take turns: the last ones, which programs use most, stay. */
    const MPI_Datatype types[] = {
        BASIC_TYPE(MPI_UNSIGNED_LONG, "ompi_mpi_unsigned_long"), BASIC_TYPE(MPI_UNSIGNED, "ompi_mpi_unsigned"),
        BASIC_TYPE(MPI_INT64_T, "ompi_mpi_int64_t"),             BASIC_TYPE(MPI_LONG, "ompi_mpi_long"),
        BASIC_TYPE(MPI_FLOAT, "ompi_mpi_float"),                 BASIC_TYPE(MPI_CHAR, "ompi_mpi_char"),
        BASIC_TYPE(MPI_BYTE, "ompi_mpi_byte"),                   BASIC_TYPE(MPI_INT, "ompi_mpi_int"),
        BASIC_TYPE(MPI_DOUBLE, "ompi_mpi_double"),
    };
    static_assert(sizeof types / sizeof *types <= BASIC_TYPES_MAX, "each has a place");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (SAPWOOD_HANDLE(types[i]) != 0) {
            basic_types[i].handle = SAPWOOD_HANDLE(types[i]);
            basic_types[i].size = sapwood_size_asked(types[i]);
        }
}

uint64_t sapwood_basic_size(uint64_t type_handle)
{
    for (size_t i = 0; type_handle != 0 && i < BASIC_TYPES_MAX; i++)
        if (basic_types[i].handle == type_handle)
            return basic_types[i].size;
    return 0;
}

void sapwood_forget_name(uint64_t handle)
{
    struct sapwood_communicator *place = handle == 0 ? NULL : place_with(handle, sapwood_cache_place(handle));
    /* Another one may have taken the place since. */
    if (place != NULL)
        atomic_compare_exchange_strong(&place->handle, &handle, 0);
}

uint64_t sapwood_number_of_none(void)
{
    static _Atomic uint64_t given;
    return OF_NONE | (atomic_fetch_add_explicit(&given, 1, memory_order_relaxed) + 1);
}

void sapwood_name_moved(uint64_t handle, uint64_t to)
{
    sapwood_table_lock();
    struct sapwood_communicator *place = handle == 0 ? NULL : place_with(handle, sapwood_cache_place(handle));
    if (place != NULL) {
        SAPWOOD_TELL(place->again, to);
        /* Else another thread has just forgotten it. */
        atomic_compare_exchange_strong(&place->handle, &handle, to);
    }
    sapwood_table_unlock();
}

void sapwood_forget_comm(MPI_Comm comm)
{
    sapwood_extras_forget(comm);
    sapwood_space_forget(comm);
    uint64_t handle = SAPWOOD_HANDLE(comm);
    forget_class(handle);
    sapwood_forget_name(handle);
}

void sapwood_forget_type(MPI_Datatype type)
{
    atomic_store_explicit(&sapwood_sizes[sapwood_cache_place(SAPWOOD_HANDLE(type))], 0, memory_order_relaxed);
}

int sapwood_rank(MPI_Comm comm)
{
    int rank = 0;
    sapwood_library.comm_rank(comm, &rank);
    return rank;
}

int sapwood_local_size(MPI_Comm comm)
{
    int size = 0;
    sapwood_library.comm_size(comm, &size);
    return size;
}

int sapwood_peers(MPI_Comm comm)
{
    int between = 0, size = 0;
    sapwood_library.comm_test_inter(comm, &between);
    if (between)
        sapwood_library.comm_remote_size(comm, &size);
    else
        sapwood_library.comm_size(comm, &size);
    return size;
}

int sapwood_neighbors(MPI_Comm comm)
{
    int topology = MPI_UNDEFINED, count = 0, incoming = 0, weighted = 0;
    sapwood_library.topo_test(comm, &topology);
    if (topology == MPI_CART) {
        sapwood_library.cartdim_get(comm, &count);
        return 2 * count;
    }
    if (topology == MPI_GRAPH)
        sapwood_library.graph_neighbors_count(comm, sapwood_rank(comm), &count);
    else if (topology == MPI_DIST_GRAPH)
        sapwood_library.dist_graph_neighbors_count(comm, &incoming, &count, &weighted);
    return count;
}

int64_t sapwood_sum(const int *counts, int length)
{
    int64_t sum = 0;
    for (int i = 0; i < length; i++)
        sum += counts[i];
    return sum;
}

int64_t sapwood_sum_large(const MPI_Count *counts, int length)
{
    int64_t sum = 0;
    for (int i = 0; i < length; i++)
        sum += counts[i];
    return sum;
}

uint64_t sapwood_weigh(const int *counts, const MPI_Datatype *types, int length)
{
    uint64_t bytes = 0;
    for (int i = 0; i < length; i++)
        bytes += sapwood_bytes(counts[i], types[i]);
    return bytes;
}

uint64_t sapwood_weigh_large(const MPI_Count *counts, const MPI_Datatype *types, int length)
{
    uint64_t bytes = 0;
    for (int i = 0; i < length; i++)
        bytes += sapwood_bytes(counts[i], types[i]);
    return bytes;
}

uint64_t sapwood_weigh_fortran(const MPI_Fint *counts, const MPI_Fint *types, int length)
{
    uint64_t bytes = 0;
    for (int i = 0; i < length; i++)
        bytes += counts[i] <= 0 ? 0 : sapwood_bytes(counts[i], sapwood_type_f2c(&types[i]));
    return bytes;
}
