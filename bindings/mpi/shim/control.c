/* The control page, the settings in it, and marks; see control.h. */
#define _GNU_SOURCE
#include "control.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "events.h"
#include "file_limit.h"
#include "functions.h"
#include "handover.h"
#include "observe.h"
#include "sapwood_mpi.h"
#include "say.h"

struct sapwood_control sapwood_control;
_Atomic uint32_t sapwood_groups = SAPWOOD_GROUPS_COUNTED;

static const unsigned char class_of[SAPWOOD_FUNCTION_IDS] = SAPWOOD_FUNCTION_CLASSES;

/* Every `every`-th call of this function is a mark; 0 none. */
static uint32_t every, every_function;
static _Atomic uint64_t calls_of_function;

static bool is_contended, is_ours;
/* Whether the program has switched counting off. */
static bool is_off;
static pthread_mutex_t settings_lock = PTHREAD_MUTEX_INITIALIZER;
static int socket_to_leaf = -1;
/* Of the page, while no leaf has it. */
static int page_fd = -1;
static pthread_mutex_t mark_lock = PTHREAD_MUTEX_INITIALIZER;

#define READ(word) atomic_load_explicit(&(word), memory_order_relaxed)
#define WRITE(word, value) atomic_store_explicit(&(word), (value), memory_order_relaxed)

int sapwood_control_make(void)
{
    if (sysconf(_SC_PAGESIZE) != SAPWOOD_CONTROL_BYTES)
        return -1;
    int fd = sapwood_memory_file("sapwood-control", SAPWOOD_CONTROL_BYTES);
    if (fd < 0)
        return -1;
    void *place = MAP_FAILED;
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        place = mmap(&sapwood_control, SAPWOOD_CONTROL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
    if (place == MAP_FAILED) {
        close(fd);
        return -1;
    }
    memcpy(sapwood_control.magic, SAPWOOD_CONTROL_MAGIC, sizeof sapwood_control.magic);
    sapwood_control.version = SAPWOOD_CONTROL_VERSION;
    sapwood_control.page_bytes = SAPWOOD_CONTROL_BYTES;
    WRITE(sapwood_control.groups, SAPWOOD_GROUPS_COUNTED | SAPWOOD_GROUP_ACTIVITIES);
    WRITE(sapwood_control.flags, SAPWOOD_CONTROL_SELECTED);
    int high = fcntl(fd, F_DUPFD_CLOEXEC, SAPWOOD_FD_MIN);
    if (high >= 0)
        close(fd);
    page_fd = high >= 0 ? high : fd;
    return page_fd;
}

static void close_page(void)
{
    if (page_fd >= 0)
        close(page_fd);
    page_fd = -1;
}

static void note_end(uint32_t how, int code)
{
    uint32_t none = SAPWOOD_END_NONE;
    if (!is_ours || READ(sapwood_control.end) != none)
        return;
    WRITE(sapwood_control.code, code);
    WRITE(sapwood_control.ended_ns, sapwood_monotonic_ns());
    atomic_compare_exchange_strong(&sapwood_control.end, &none, how);
}

static void process_exits(int status, void *unused)
{
    (void)unused;
    note_end(SAPWOOD_END_EXIT, status);
}

void sapwood_note_abort(int code)
{
    note_end(SAPWOOD_END_ABORT, code);
}

/* N:ID, as `sapwood mpi --every` sets it. */
static void read_every(void)
{
    const char *text = getenv("SAPWOOD_MPI_EVERY");
    if (text == NULL || *text == '\0')
        return;
    char *end;
    unsigned long number = strtoul(text, &end, 10);
    unsigned long function = *end == ':' ? strtoul(end + 1, &end, 10) : 0;
    if (*end != '\0' || number == 0 || number > UINT32_MAX || function == 0 || function >= SAPWOOD_FUNCTION_IDS) {
        if (sapwood_table->header.world_rank == 0)
            sapwood_say("SAPWOOD_MPI_EVERY is '%.64s', not N:ID with the number of a function from 1 to %d, such as "
                        "100:38; no call is a mark of an iteration", text, SAPWOOD_FUNCTION_IDS - 1);
        return;
    }
    every = (uint32_t)number;
    every_function = (uint32_t)function;
}

void sapwood_control_start(int leaf_socket, bool contended)
{
    is_contended = contended;
    socket_to_leaf = leaf_socket;
    is_ours = true;
    /* The leaf has it then, and alone writes the page. */
    if (leaf_socket >= 0)
        close_page();
    read_every();
    on_exit(process_exits, NULL);
}

void sapwood_control_leave(void)
{
    is_ours = false;
    socket_to_leaf = -1;
    close_page();
}

int sapwood_control_phase(void)
{
    if (READ(sapwood_groups) == SAPWOOD_GROUPS_COUNTED && every == 0)
        return is_contended ? SAPWOOD_CONTENDED : SAPWOOD_COUNTING;
    /* Calls that are marks are looked at on every rank, so that all agree on their number. */
    if (READ(sapwood_groups) != 0 || every != 0)
        return SAPWOOD_SELECTIVE;
    /* Waits need the number of every collective, also of those that are not recorded. */
    if (sapwood_events_are_asked())
        return SAPWOOD_SELECTIVE;
    sapwood_events_lose_order();
    return SAPWOOD_PAUSED;
}

/* What the settings and the program together want counted. Callers hold the lock. */
static void choose_groups(void)
{
    bool selected = (READ(sapwood_control.flags) & SAPWOOD_CONTROL_SELECTED) && !is_off;
    uint32_t groups = selected ? READ(sapwood_control.groups) & SAPWOOD_GROUPS_COUNTED : 0;
    WRITE(sapwood_groups, groups);
    /* Time and bytes of calls may be left out; calls of a class that is, too. */
    if (groups != SAPWOOD_GROUPS_COUNTED)
        WRITE(sapwood_control.partly, 1);
}

void sapwood_control_take(void)
{
    pthread_mutex_lock(&settings_lock);
    if (atomic_exchange_explicit(&sapwood_control.pending, 0, memory_order_acquire) != 0) {
        uint32_t change = READ(sapwood_control.change);
        choose_groups();
        sapwood_events_switch(READ(sapwood_control.flags) & SAPWOOD_CONTROL_TRACING);
        sapwood_phase_change(sapwood_control_phase());
        atomic_store_explicit(&sapwood_control.obeyed, change, memory_order_release);
    }
    pthread_mutex_unlock(&settings_lock);
}

void sapwood_control_level(int level)
{
    /* Before MPI_Init there are no settings yet. */
    if ((level != 0 && level != 1) || READ(sapwood_phase) < SAPWOOD_PAUSED)
        return;
    pthread_mutex_lock(&settings_lock);
    is_off = level == 0;
    choose_groups();
    sapwood_events_hold(is_off);
    sapwood_phase_change(sapwood_control_phase());
    pthread_mutex_unlock(&settings_lock);
}

bool sapwood_select(uint32_t function, uint64_t *calls, uint64_t *ns, uint64_t *bytes)
{
    uint32_t groups = READ(sapwood_groups);
    if ((groups >> class_of[function] & 1) == 0)
        return false;
    if ((groups & SAPWOOD_GROUP_CALLS) == 0)
        *calls = 0;
    if ((groups & SAPWOOD_GROUP_TIME) == 0)
        *ns = 0;
    if ((groups & SAPWOOD_GROUP_BYTES) == 0)
        *bytes = 0;
    return true;
}

void sapwood_call_ended(uint32_t function)
{
    if (every == 0 || function != every_function)
        return;
    if ((atomic_fetch_add_explicit(&calls_of_function, 1, memory_order_relaxed) + 1) % every == 0)
        sapwood_mark();
}

static void take_snapshot(uint64_t mark)
{
    struct sapwood_snapshot *snapshot = sapwood_snapshot_in(sapwood_table, mark);
    uint32_t used = atomic_load_explicit(&sapwood_table->header.slots_used, memory_order_acquire);
    atomic_store_explicit(&snapshot->mark, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    for (uint32_t i = 0; i < used; i++) {
        const struct sapwood_slot *slot = &sapwood_table->slots[i];
        WRITE(snapshot->counters[i].count, READ(slot->count));
        WRITE(snapshot->counters[i].time_ns, READ(slot->time_ns));
        WRITE(snapshot->counters[i].bytes, READ(slot->bytes));
    }
    WRITE(snapshot->slots_used, used);
    WRITE(snapshot->at_ns, sapwood_monotonic_ns());
    atomic_store_explicit(&snapshot->mark, mark, memory_order_release);
}

/* Whether a leaf has the page, or may attach and find it. */
static bool may_be_watched(void)
{
    return socket_to_leaf >= 0 || page_fd >= 0;
}

void sapwood_mark(void)
{
    if (!may_be_watched())
        return;
    pthread_mutex_lock(&mark_lock);
    struct sapwood_header *header = &sapwood_table->header;
    uint64_t mark = READ(header->marks) + 1;
    if (mark - atomic_load_explicit(&sapwood_control.taken, memory_order_acquire) <= SAPWOOD_SNAPSHOTS)
        take_snapshot(mark);
    else
        WRITE(header->marks_left_out, READ(header->marks_left_out) + 1);
    atomic_store_explicit(&header->marks, mark, memory_order_release);
    pthread_mutex_unlock(&mark_lock);
    /* Only if the leaf sleeps: it looks at the marks by itself when it has work to do, and if it has attached. */
    if (socket_to_leaf >= 0 && READ(sapwood_control.armed) != 0 && atomic_exchange(&sapwood_control.armed, 0) != 0) {
        ssize_t sent = send(socket_to_leaf, "m", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        (void)sent;
    }
}

SAPWOOD_EXPORT void sapwood_round(void)
{
    if (READ(sapwood_phase) >= SAPWOOD_PAUSED)
        sapwood_mark();
}
