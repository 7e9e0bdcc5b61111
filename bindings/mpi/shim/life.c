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
#include <sys/resource.h>
#include <unistd.h>

#include "chain.h"
#include "control.h"
#include "events.h"
#include "events_folder.h"
#include "extras.h"
#include "file_limit.h"
#include "handover.h"
#include "library.h"
#include "observe.h"
#include "requests.h"
#include "say.h"
#include "sizes.h"
#include "transport.h"

struct sapwood_table *sapwood_table;

static pthread_mutex_t phase_lock = PTHREAD_MUTEX_INITIALIZER;
static int table_fd = -1;
/* While MPI_Init has not returned. */
static int init_fd = -1;

static bool is_of_one_thread(int phase)
{
    return phase == SAPWOOD_COUNTING || phase == SAPWOOD_CONTENDED;
}

void sapwood_phase_leaves_one_thread(void)
{
    int phase = atomic_load(&sapwood_phase);
    while (is_of_one_thread(phase) && !atomic_compare_exchange_weak(&sapwood_phase, &phase, SAPWOOD_THREADS))
        ;
}

static void enter_phase(int phase)
{
    bool are_several = atomic_load(&sapwood_are_several);
    atomic_store(&sapwood_phase, are_several && is_of_one_thread(phase) ? SAPWOOD_THREADS : phase);
    /* A second thread that came in between has not seen this phase. */
    if (!are_several && atomic_load(&sapwood_are_several))
        sapwood_phase_leaves_one_thread();
}

static int phase_now(void)
{
    return atomic_load_explicit(&sapwood_phase, memory_order_acquire);
}

/* A forked child is not a rank: it neither counts nor keeps the leaf waiting for
 * the rank's end, and is not found by tools that attach. */
static void become_a_child(void)
{
    enter_phase(SAPWOOD_OFF);
    if (table_fd >= 0)
        close(table_fd);
    table_fd = -1;
    sapwood_activity_forked();
    sapwood_events_leave();
    sapwood_control_leave();
    sapwood_transport_forget();
}

/* Snapshots come last, so that a leaf can copy all that lies before them. */
static size_t snapshots_offset(void)
{
    return sapwood_extras_asked() == 0 ? offsetof(struct sapwood_table, tallies) : sizeof(struct sapwood_table);
}

uint64_t sapwood_table_bytes(void)
{
    return snapshots_offset() + SAPWOOD_SNAPSHOTS * sizeof(struct sapwood_snapshot);
}

/* Memory that a leaf may map too, of a size that is sealed afterwards;
 * the leaf's own mappings can only read. */
struct sapwood_table *sapwood_table_make(void)
{
    if (sapwood_table != NULL)
        return sapwood_table;
    uint64_t bytes = sapwood_table_bytes();
    int fd = sapwood_memory_file("sapwood-profile", bytes);
    if (fd < 0)
        return NULL;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (memory == MAP_FAILED) {
        close(fd);
        return NULL;
    }
    int size_seals = F_SEAL_SHRINK | F_SEAL_GROW;
    if (fcntl(fd, F_ADD_SEALS, size_seals | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) != 0)
        fcntl(fd, F_ADD_SEALS, size_seals | F_SEAL_SEAL);
    pthread_atfork(NULL, NULL, become_a_child);
    sapwood_table = memory;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, SAPWOOD_FD_MIN);
    if (high >= 0)
        close(fd);
    table_fd = high >= 0 ? high : fd;
    return sapwood_table;
}

void sapwood_table_move(int fd)
{
    uint64_t bytes = sapwood_table->header.table_bytes;
    struct sapwood_table *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (copy != MAP_FAILED) {
        /* The first word last: ranks that start later judge whose this file is by a header that is whole. */
        uint64_t magic;
        memcpy(&magic, sapwood_table, sizeof magic);
        memcpy((char *)copy + sizeof magic, (char *)sapwood_table + sizeof magic, bytes - sizeof magic);
        __atomic_store_n((uint64_t *)copy, magic, __ATOMIC_RELEASE);
        munmap(copy, bytes);
        /* In the place of the memory, to which there are pointers already. Not by mremap, whose last argument the
           hooks of UCX drop, which MPICH brings. */
        if (mmap(sapwood_table, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED) {
            close(table_fd);
            table_fd = fd;
            return;
        }
    }
    close(fd);
}

static uint64_t nanoseconds(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000u;
}

/* What the process has used so far. */
static struct sapwood_usage usage_now(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return (struct sapwood_usage){0};
    return (struct sapwood_usage){.cpu_user_ns = nanoseconds(usage.ru_utime),
                                  .cpu_system_ns = nanoseconds(usage.ru_stime),
                                  .resident_bytes_max = (uint64_t)usage.ru_maxrss * 1024,
                                  .minor_faults = (uint64_t)usage.ru_minflt,
                                  .major_faults = (uint64_t)usage.ru_majflt,
                                  .voluntary_switches = (uint64_t)usage.ru_nvcsw,
                                  .involuntary_switches = (uint64_t)usage.ru_nivcsw};
}

/* Whether MPI_Comm_spawn started this process. */
static bool is_spawned(void)
{
    MPI_Comm parent = sapwood_library.comm_null;
    return sapwood_library.comm_get_parent(&parent) == MPI_SUCCESS && parent != sapwood_library.comm_null;
}

/* What the header says beside counts. */
static void fill_circumstances(struct sapwood_header *header)
{
    struct sapwood_usage usage = usage_now();
    const char *library;
    header->started_cpu_ns = usage.cpu_user_ns + usage.cpu_system_ns;
    header->is_spawned = is_spawned();
    header->taken_functions = sapwood_taken_functions(&library);
    if (header->taken_functions > 0 && header->world_rank == 0)
        sapwood_say("%s takes %u MPI functions before the shim, which does not see them; preload it behind the shim",
                    library, header->taken_functions);
    header->histograms_offset = offsetof(struct sapwood_table, histograms);
    header->histograms_capacity = SAPWOOD_HISTOGRAMS;
    header->pending_offset = offsetof(struct sapwood_table, pending);
    header->tallies_offset = offsetof(struct sapwood_table, tallies);
    header->extras = sapwood_extras_asked();
    header->tallies_capacity = header->extras == 0 ? 0 : SAPWOOD_TALLIES;
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
    header->table_bytes = sapwood_table_bytes();
    fill_circumstances(header);
    header->activities_offset = offsetof(struct sapwood_table, activities);
    header->activities_capacity = SAPWOOD_ACTIVITIES;
    header->communicators_capacity = SAPWOOD_COMMUNICATORS;
    struct sapwood_instant now = sapwood_clock_both();
    header->clock_ticks = now.ticks;
    header->clock_ns = now.ns;
    header->clock_scale = sapwood_clock_is_cycles ? sapwood_clock_scale : UINT64_C(1) << 32;
    header->snapshots_offset = (uint32_t)snapshots_offset();
    header->snapshots_capacity = SAPWOOD_SNAPSHOTS;
    header->comm_world = SAPWOOD_HANDLE(sapwood_library.comm_world);
    atomic_store_explicit(&header->state, SAPWOOD_STATE_RUNNING, memory_order_release);
}

/* Where this rank writes its own profile; NULL if it was not asked to. */
static const char *dump_directory(void)
{
    const char *directory = getenv("SAPWOOD_MPI_DUMP_DIR");
    return directory != NULL && *directory != '\0' ? directory : NULL;
}

/* Opens the transport. The table stays open under its name, by which `sapwood mpi attach` finds it
 * later: a rank that was told of no leaves counts as well. Returns whether it counts. */
static bool find_observer(void)
{
    const struct sapwood_header *header = &sapwood_table->header;
    const char *reason = "";
    if (sapwood_transport_open(table_fd, &reason))
        return true;
    bool is_told = getenv("SAPWOOD_MPI_LEAVES") != NULL || sapwood_transport_is_chosen();
    if (!is_told)
        return true;
    bool dumps = dump_directory() != NULL, keeps = sapwood_are_files_kept();
    if (*reason != '\0' && (header->world_rank == 0 || getenv("SAPWOOD_VERBOSE") != NULL))
        sapwood_say("rank %u: %s; the program runs on %s", header->world_rank, reason,
                    keeps   ? "and only keeps its events in files"
                    : dumps ? "and only writes its own profile"
                            : "unobserved");
    return dumps || keeps;
}

/* A limit on files is that of all ranks of a host, a lack of memory that of one. */
static void say_no_memory(int error)
{
    if (error != EFBIG)
        sapwood_say("no shared memory for the profile (%s); the program runs on unobserved", strerror(error));
    else
        sapwood_say_too_large("no profile: the file of a rank's profile", sapwood_table_bytes(),
                              "; the program runs on unobserved");
}

void sapwood_say_too_large(const char *what, uint64_t bytes, const char *so)
{
    if (sapwood_rank_on_host((uint32_t)sapwood_rank(sapwood_library.comm_world)) != 0)
        return;
    sapwood_say("%s has %llu bytes, and files are limited to %llu; raise the limit (ulimit -f unlimited)%s", what,
                (unsigned long long)bytes, (unsigned long long)sapwood_file_bytes_max(), so);
}

/* MPI is initialised: makes, fills and hands over the table, and starts to count. */
static void start(void)
{
    int granted = MPI_THREAD_SINGLE;
    sapwood_library_try();
    sapwood_library.query_thread(&granted);
    bool contended = granted == MPI_THREAD_MULTIPLE;
    sapwood_clock_calibrate();
    if (sapwood_table_make() == NULL) {
        say_no_memory(errno);
        enter_phase(SAPWOOD_OFF);
        return;
    }
    fill_header(contended);
    sapwood_events_make();
    sapwood_sizes_begin();
    if (!find_observer()) {
        sapwood_control_leave();
        enter_phase(SAPWOOD_OFF);
        return;
    }
    /* The thread that initialises MPI is seen before its next call. */
    sapwood_activity_own();
    sapwood_extras = sapwood_table->header.extras;
    sapwood_control_start(sapwood_leaf_socket(), contended);
    enter_phase(sapwood_control_phase());
}

void sapwood_phase_change(int phase)
{
    pthread_mutex_lock(&phase_lock);
    if (phase_now() >= SAPWOOD_PAUSED) {
        enter_phase(phase);
        /* After that, so that a thread that is inside of a call adds none afterwards. */
        if (phase == SAPWOOD_PAUSED)
            sapwood_requests_forget();
    }
    pthread_mutex_unlock(&phase_lock);
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

bool sapwood_take_settings(void)
{
    sapwood_control_take();
    return phase_now() >= SAPWOOD_COUNTING;
}

bool sapwood_begin_slowly(void)
{
    if (sapwood_thread.is_inside || phase_now() == SAPWOOD_OFF)
        return false;
    if (phase_now() == SAPWOOD_PAUSED)
        return sapwood_control_is_pending() && sapwood_take_settings();
    pthread_mutex_lock(&phase_lock);
    /* What start asks of MPI may come back through our wrappers. */
    sapwood_thread.is_inside = true;
    prepare();
    if (phase_now() == SAPWOOD_WAITING && is_initialised())
        start();
    sapwood_thread.is_inside = false;
    pthread_mutex_unlock(&phase_lock);
    return phase_now() >= SAPWOOD_COUNTING;
}

static void hide_init(void)
{
    int fd = init_fd;
    /* First: a child that is forked in between must not close what has this number next. */
    init_fd = -1;
    if (fd >= 0)
        close(fd);
}

/* Shows the leaf that this rank has called MPI_Init, in which it may wait for others, and when: by the name of an
 * empty file in memory, which is open until the call returns. `started.rs` of tools/monitor reads it. */
static void show_init(uint64_t begin)
{
    char name[48];
    if (getenv("SAPWOOD_MPI_LEAVES") == NULL)
        return;
    snprintf(name, sizeof name, "sapwood-init-%llu", (unsigned long long)begin);
    int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0)
        return;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, SAPWOOD_FD_MIN);
    if (high >= 0)
        close(fd);
    init_fd = high >= 0 ? high : fd;
    /* A child that goes on without exec is not in MPI_Init. */
    pthread_atfork(NULL, NULL, hide_init);
}

bool sapwood_init_begins(uint64_t *begin)
{
    if (sapwood_thread.is_inside)
        return false;
    sapwood_thread.is_inside = true;
    pthread_mutex_lock(&phase_lock);
    prepare();
    pthread_mutex_unlock(&phase_lock);
    if (phase_now() != SAPWOOD_WAITING) {
        sapwood_thread.is_inside = false;
        return false;
    }
    *begin = sapwood_monotonic_ns();
    show_init(*begin);
    return true;
}

void sapwood_init_ends(uint32_t function, uint64_t begin, bool succeeded)
{
    uint64_t ns = sapwood_monotonic_ns() - begin;
    pthread_mutex_lock(&phase_lock);
    if (succeeded && phase_now() == SAPWOOD_WAITING)
        start();
    hide_init();
    pthread_mutex_unlock(&phase_lock);
    sapwood_end_ns(function, SAPWOOD_CLASS_NONE, ns);
}

/* Writes memory to `<dir>/rank-<r>.<kind>`, whole or not at all. */
static void write_dump(const char *directory, const char *kind, const void *memory, uint64_t bytes)
{
    uint32_t rank = sapwood_table->header.world_rank;
    char partial[4096], path[4096];
    int length = snprintf(path, sizeof path, "%s/rank-%u.%s", directory, rank, kind);
    int partial_length = snprintf(partial, sizeof partial, "%s/.rank-%u.%s", directory, rank, kind);
    if (length < 0 || partial_length < 0 || (size_t)partial_length >= sizeof partial) {
        sapwood_say("SAPWOOD_MPI_DUMP_DIR is too long; no profile is written");
        return;
    }
    int fd = open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    size_t written = 0;
    while (fd >= 0 && written < bytes) {
        ssize_t more = write(fd, (const char *)memory + written, bytes - written);
        if (more <= 0 && errno != EINTR)
            break;
        written += more > 0 ? (size_t)more : 0;
    }
    bool whole = fd >= 0 && written == bytes;
    if (fd >= 0 && close(fd) != 0)
        whole = false;
    if (!whole || rename(partial, path) != 0) {
        sapwood_say("cannot write %s: %s", path, strerror(errno));
        unlink(partial);
    }
}

/* Stops counting for good. */
static void close_table(uint32_t state)
{
    sapwood_extras = 0;
    atomic_store_explicit(&sapwood_recording, 0, memory_order_relaxed);
    enter_phase(SAPWOOD_OFF);
    sapwood_table->header.usage = usage_now();
    atomic_store_explicit(&sapwood_table->header.state, state, memory_order_release);
}

static void leave_dump(void)
{
    const char *directory = dump_directory();
    struct sapwood_file_signal held;
    sapwood_transport_end();
    sapwood_file_signal_hold(&held);
    if (directory != NULL)
        write_dump(directory, "profile", sapwood_table, sapwood_table->header.table_bytes);
    if (directory != NULL && sapwood_events_are_asked())
        write_dump(directory, "events", sapwood_events, sapwood_events_bytes());
    sapwood_file_signal_release(&held);
}

bool sapwood_finalize_begins(uint32_t function, uint64_t *begin)
{
    if (sapwood_thread.is_inside || phase_now() < SAPWOOD_PAUSED)
        return false;
    /* It may be this thread's first call, which comes among the others before it is counted. */
    struct sapwood_activity *activity = sapwood_activity_own();
    sapwood_end(activity, function, SAPWOOD_CLASS_NONE, 0);
    *begin = sapwood_ticks();
    sapwood_enter(function, 0, SAPWOOD_NO_NUMBER, SAPWOOD_NO_NUMBER, *begin);
    sapwood_events_finalize();
    close_table(SAPWOOD_STATE_FINALIZED);
    return true;
}

void sapwood_finalize_ends(uint32_t function, uint64_t begin)
{
    uint64_t ticks = sapwood_ticks() - begin;
    sapwood_add_time(function, sapwood_ns(ticks));
    sapwood_leave(sapwood_activity_own(), ticks);
    sapwood_table->header.usage = usage_now();
    leave_dump();
}

static __attribute__((destructor)) void process_ends(void)
{
    if (phase_now() == SAPWOOD_UNTRIED)
        sapwood_say_unseen();
    if (phase_now() < SAPWOOD_PAUSED)
        return;
    close_table(SAPWOOD_STATE_EXITED);
    leave_dump();
}
