/* The life of a table: made when MPI is initialised, handed to its leaf, closed
 * by MPI_Finalize or the end of the process. Nothing happens before the program's
 * first MPI call, because the shim is preloaded into launchers and shells too. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "handover.h"
#include "library.h"
#include "observe.h"
#include "say.h"
#include "sizes.h"

struct sapwood_table *sapwood_table;

static pthread_mutex_t phase_lock = PTHREAD_MUTEX_INITIALIZER;
static int table_fd = -1;
static int leaf_socket = -1;

static void enter_phase(int phase)
{
    atomic_store_explicit(&sapwood_phase, phase, memory_order_release);
}

static int phase_now(void)
{
    return atomic_load_explicit(&sapwood_phase, memory_order_acquire);
}

/* A forked child is not a rank: it neither counts nor keeps the leaf waiting for
 * the rank's end. */
static void become_a_child(void)
{
    enter_phase(SAPWOOD_OFF);
    if (leaf_socket >= 0)
        close(leaf_socket);
    leaf_socket = -1;
}

/* Memory that a leaf may map too, of a size that is sealed afterwards;
 * the leaf's own mappings can only read. */
struct sapwood_table *sapwood_table_make(void)
{
    if (sapwood_table != NULL)
        return sapwood_table;
    int fd = memfd_create("sapwood-profile", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return NULL;
    if (ftruncate(fd, sizeof(struct sapwood_table)) != 0) {
        close(fd);
        return NULL;
    }
    void *memory = mmap(NULL, sizeof(struct sapwood_table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (memory == MAP_FAILED) {
        close(fd);
        return NULL;
    }
    int size_seals = F_SEAL_SHRINK | F_SEAL_GROW;
    if (fcntl(fd, F_ADD_SEALS, size_seals | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) != 0)
        fcntl(fd, F_ADD_SEALS, size_seals | F_SEAL_SEAL);
    pthread_atfork(NULL, NULL, become_a_child);
    sapwood_table = memory;
    table_fd = fd;
    return sapwood_table;
}

static void fill_header(bool contended)
{
    struct sapwood_header *header = &sapwood_table->header;
    memcpy(header->magic, SAPWOOD_TABLE_MAGIC, sizeof header->magic);
    header->version = SAPWOOD_TABLE_VERSION;
    header->header_bytes = sizeof *header;
    header->world_rank = (uint32_t)sapwood_rank(sapwood_library.comm_world);
    header->world_size = (uint32_t)sapwood_local_size(sapwood_library.comm_world);
    header->pid = (uint32_t)getpid();
    header->abi = SAPWOOD_ABI;
    header->flags = (sapwood_clock_is_cycles ? SAPWOOD_FLAG_CYCLE_CLOCK : 0) |
                    (contended ? SAPWOOD_FLAG_THREAD_MULTIPLE : 0);
    header->started_ns = sapwood_monotonic_ns();
    gethostname(header->host, SAPWOOD_LABEL_BYTES - 1);
    strncpy(header->program, program_invocation_short_name, SAPWOOD_LABEL_BYTES - 1);
    header->slot_capacity = SAPWOOD_SLOTS;
    header->names_offset = offsetof(struct sapwood_table, names);
    header->names_capacity = SAPWOOD_NAMES_BYTES;
    header->table_bytes = sizeof(struct sapwood_table);
    header->activities_offset = offsetof(struct sapwood_table, activities);
    header->activities_capacity = SAPWOOD_ACTIVITIES;
    header->communicators_capacity = SAPWOOD_COMMUNICATORS;
    header->clock_ticks = sapwood_ticks();
    header->clock_ns = sapwood_monotonic_ns();
    header->clock_scale = sapwood_clock_is_cycles ? sapwood_clock_scale : UINT64_C(1) << 32;
    header->comm_world = SAPWOOD_HANDLE(sapwood_library.comm_world);
    atomic_store_explicit(&header->state, SAPWOOD_STATE_RUNNING, memory_order_release);
}

/* Where this rank writes its own profile; NULL if it was not asked to. */
static const char *dump_directory(void)
{
    const char *directory = getenv("SAPWOOD_MPI_DUMP_DIR");
    return directory != NULL && *directory != '\0' ? directory : NULL;
}

/* Hands the table over. Returns whether a leaf will read the counts. */
static bool find_observer(void)
{
    const struct sapwood_header *header = &sapwood_table->header;
    const char *reason = "";
    leaf_socket = sapwood_handover(header->world_rank, header->world_size, table_fd, header->table_bytes, &reason);
    close(table_fd);
    table_fd = -1;
    if (leaf_socket >= 0)
        return true;
    bool dumps = dump_directory() != NULL;
    bool asked_for = getenv("SAPWOOD_MPI_LEAVES") != NULL || !dumps;
    if (asked_for && (header->world_rank == 0 || getenv("SAPWOOD_VERBOSE") != NULL))
        sapwood_say("rank %u: %s; the program runs on %s", header->world_rank, reason,
                    dumps ? "and only writes its own profile" : "unobserved");
    return dumps;
}

/* MPI is initialised: makes, fills and hands over the table, and starts to count. */
static void start(void)
{
    int granted = MPI_THREAD_SINGLE;
    sapwood_library.query_thread(&granted);
    bool contended = granted == MPI_THREAD_MULTIPLE;
    sapwood_clock_calibrate();
    if (sapwood_table_make() == NULL) {
        sapwood_say("no shared memory for the profile (%s); the program runs on unobserved", strerror(errno));
        enter_phase(SAPWOOD_OFF);
        return;
    }
    fill_header(contended);
    if (!find_observer()) {
        enter_phase(SAPWOOD_OFF);
        return;
    }
    /* The thread that initialises MPI is seen before its next call. */
    sapwood_activity_own();
    enter_phase(contended ? SAPWOOD_CONTENDED : SAPWOOD_COUNTING);
}

void sapwood_clock_ready(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, sapwood_clock_choose);
}

/* Leaves UNTRIED: knows the library and the clock. Callers hold phase_lock. */
static void prepare(void)
{
    if (phase_now() != SAPWOOD_UNTRIED)
        return;
    sapwood_library_open();
    sapwood_clock_ready();
    enter_phase(SAPWOOD_WAITING);
}

/* Whether MPI was initialised past our wrappers and still is. */
static bool is_initialised(void)
{
    int initialised = 0, finalised = 0;
    sapwood_library.initialized(&initialised);
    sapwood_library.finalized(&finalised);
    return initialised && !finalised;
}

bool sapwood_begin_slowly(void)
{
    if (sapwood_inside || phase_now() == SAPWOOD_OFF)
        return false;
    pthread_mutex_lock(&phase_lock);
    /* What start asks of MPI may come back through our wrappers. */
    sapwood_inside = true;
    prepare();
    if (phase_now() == SAPWOOD_WAITING && is_initialised())
        start();
    sapwood_inside = false;
    pthread_mutex_unlock(&phase_lock);
    return phase_now() >= SAPWOOD_COUNTING;
}

bool sapwood_init_begins(uint64_t *begin)
{
    if (sapwood_inside)
        return false;
    sapwood_inside = true;
    pthread_mutex_lock(&phase_lock);
    prepare();
    pthread_mutex_unlock(&phase_lock);
    if (phase_now() != SAPWOOD_WAITING) {
        sapwood_inside = false;
        return false;
    }
    *begin = sapwood_monotonic_ns();
    return true;
}

void sapwood_init_ends(uint32_t function, uint64_t begin, bool succeeded)
{
    uint64_t ns = sapwood_monotonic_ns() - begin;
    pthread_mutex_lock(&phase_lock);
    if (succeeded && phase_now() == SAPWOOD_WAITING)
        start();
    pthread_mutex_unlock(&phase_lock);
    sapwood_end_ns(function, SAPWOOD_CLASS_NONE, ns, 0);
}

/* Writes the table's bytes to `<dir>/rank-<r>.profile`, whole or not at all. */
static void write_dump(const char *directory)
{
    const struct sapwood_header *header = &sapwood_table->header;
    char partial[4096], path[4096];
    int length = snprintf(path, sizeof path, "%s/rank-%u.profile", directory, header->world_rank);
    int partial_length = snprintf(partial, sizeof partial, "%s/.rank-%u.profile", directory, header->world_rank);
    if (length < 0 || partial_length < 0 || (size_t)partial_length >= sizeof partial) {
        sapwood_say("SAPWOOD_MPI_DUMP_DIR is too long; no profile is written");
        return;
    }
    int fd = open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    size_t written = 0;
    while (fd >= 0 && written < sizeof *sapwood_table) {
        ssize_t more = write(fd, (const char *)sapwood_table + written, sizeof *sapwood_table - written);
        if (more <= 0 && errno != EINTR)
            break;
        written += more > 0 ? (size_t)more : 0;
    }
    bool whole = fd >= 0 && written == sizeof *sapwood_table;
    if (fd >= 0 && close(fd) != 0)
        whole = false;
    if (!whole || rename(partial, path) != 0) {
        sapwood_say("cannot write %s: %s", path, strerror(errno));
        unlink(partial);
    }
}

/* Stops counting for good. The state comes last in the table and first in the dump. */
static void close_table(uint32_t state)
{
    enter_phase(SAPWOOD_OFF);
    atomic_store_explicit(&sapwood_table->header.state, state, memory_order_release);
    if (dump_directory() != NULL)
        write_dump(dump_directory());
}

void sapwood_finalize(uint32_t function)
{
    if (sapwood_inside || phase_now() < SAPWOOD_COUNTING)
        return;
    /* MPI_Finalize returns too late to be counted, but can be seen not to return. */
    sapwood_end(function, SAPWOOD_CLASS_NONE, 0, 0);
    sapwood_enter(function, 0, SAPWOOD_NO_NUMBER, SAPWOOD_NO_NUMBER, sapwood_ticks());
    close_table(SAPWOOD_STATE_FINALIZED);
}

static __attribute__((destructor)) void process_ends(void)
{
    if (phase_now() >= SAPWOOD_COUNTING)
        close_table(SAPWOOD_STATE_EXITED);
}
