/* The event file and its rings; see events.h. */
#define _GNU_SOURCE
#include "events.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "events_folder.h"
#include "file_limit.h"
#include "handover.h"
#include "hops.h"
#include "say.h"

_Atomic uint32_t sapwood_recording;
struct sapwood_events *sapwood_events;
SAPWOOD_EXPORT struct sapwood_hops sapwood_mpi_hops = {.version = SAPWOOD_HOPS_VERSION};

static uint32_t ring_records;
static bool is_asked;
/* Whether recording is switched on, and whether the program holds it meanwhile. */
static bool is_switched_on, is_held;
static int events_fd = -1;

#define READ(word) atomic_load_explicit(&(word), memory_order_relaxed)

static size_t ring_bytes(void)
{
    return sizeof(struct sapwood_ring) + (size_t)ring_records * sizeof(struct sapwood_record);
}

/* The rings, by the place of a thread's activity. */
static struct sapwood_ring *rings[SAPWOOD_RINGS];

/* The largest power of two of records in the bytes that the environment gives to a ring. */
static uint32_t records_asked(void)
{
    const char *text = getenv("SAPWOOD_MPI_RING_BYTES");
    unsigned long bytes = SAPWOOD_RING_BYTES;
    if (text != NULL && *text != '\0') {
        char *end;
        bytes = strtoul(text, &end, 10);
        if (*end != '\0' || bytes < SAPWOOD_RING_BYTES_MIN || bytes > SAPWOOD_RING_BYTES_MAX) {
            if (sapwood_table->header.world_rank == 0)
                sapwood_say("SAPWOOD_MPI_RING_BYTES is '%.32s', not a number from %d to %d; rings have %d bytes", text,
                            SAPWOOD_RING_BYTES_MIN, SAPWOOD_RING_BYTES_MAX, SAPWOOD_RING_BYTES);
            bytes = SAPWOOD_RING_BYTES;
        }
    }
    uint32_t records = (uint32_t)(bytes / sizeof(struct sapwood_record));
    return UINT32_C(1) << (31 - __builtin_clz(records));
}

/* Rings of hops that the environment asks for. */
static uint32_t hop_rings_asked(void)
{
    const char *text = getenv("SAPWOOD_MPI_HOPS");
    return text != NULL && strcmp(text, "1") == 0 ? SAPWOOD_HOP_RINGS : 0;
}

/* Tells the bypass where it notes hops. */
static void show_hops(uint32_t count)
{
    char *behind = (char *)(sapwood_events + 1) + SAPWOOD_RINGS * ring_bytes();
    sapwood_events->header.hop_rings = count;
    sapwood_mpi_hops.rings = count;
    sapwood_mpi_hops.ring_records = ring_records;
    sapwood_mpi_hops.ring_bytes = (uint32_t)ring_bytes();
    sapwood_mpi_hops.first = count > 0 ? (struct sapwood_ring *)behind : NULL;
    sapwood_mpi_hops.without_ring = &sapwood_events->header.without_hop_ring;
}

static void switch_hops(bool on)
{
    atomic_store_explicit(&sapwood_mpi_hops.is_recording, on && sapwood_mpi_hops.rings > 0, memory_order_release);
}

uint64_t sapwood_events_bytes(void)
{
    return sapwood_events == NULL ? 0 : sapwood_events->header.file_bytes;
}

bool sapwood_events_are_asked(void)
{
    return is_asked;
}

static void fill_header(uint64_t bytes)
{
    const struct sapwood_header *table = &sapwood_table->header;
    struct sapwood_events_header *header = &sapwood_events->header;
    memcpy(header->magic, SAPWOOD_EVENTS_MAGIC, sizeof header->magic);
    header->version = SAPWOOD_EVENTS_VERSION;
    header->header_bytes = sizeof *header;
    header->world_rank = table->world_rank;
    header->world_size = table->world_size;
    header->pid = table->pid;
    header->flags = table->flags & SAPWOOD_FLAG_CYCLE_CLOCK;
    header->file_bytes = bytes;
    header->clock_ticks = table->clock_ticks;
    header->clock_ns = table->clock_ns;
    header->clock_scale = table->clock_scale;
    header->spaces_capacity = SAPWOOD_SPACES;
    header->rings_capacity = SAPWOOD_RINGS;
    header->ring_records = ring_records;
    header->rings_offset = sizeof *sapwood_events;
}

/* In memory, which takes no room before it is used, or in the folder that was asked for, to which the
 * table goes then as well. */
static int make_file(void)
{
    uint32_t hop_rings = hop_rings_asked();
    uint64_t bytes = sizeof *sapwood_events + (SAPWOOD_RINGS + hop_rings) * ring_bytes();
    struct sapwood_kept_files kept = sapwood_kept_files_make(sapwood_table->header.table_bytes, bytes);
    if (kept.table >= 0)
        sapwood_table_move(kept.table);
    int fd = kept.events >= 0 ? kept.events : sapwood_memory_file("sapwood-events", bytes);
    if (fd < 0 && errno == EFBIG)
        sapwood_say_too_large("calls are not recorded: the file of a rank's rings", bytes, "");
    if (fd < 0)
        return -1;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        close(fd);
        return -1;
    }
    int size_seals = F_SEAL_SHRINK | F_SEAL_GROW;
    if (fcntl(fd, F_ADD_SEALS, size_seals | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) != 0)
        fcntl(fd, F_ADD_SEALS, size_seals | F_SEAL_SEAL);
    sapwood_events = memory;
    for (size_t place = 0; place < SAPWOOD_RINGS; place++)
        rings[place] = (struct sapwood_ring *)((char *)(sapwood_events + 1) + place * ring_bytes());
    fill_header(bytes);
    show_hops(hop_rings);
    int high = fcntl(fd, F_DUPFD_CLOEXEC, SAPWOOD_FD_MIN);
    if (high >= 0)
        close(fd);
    return high >= 0 ? high : fd;
}

int sapwood_events_fd(void)
{
    return events_fd;
}

void sapwood_events_leave(void)
{
    switch_hops(false);
    if (events_fd >= 0)
        close(events_fd);
    events_fd = -1;
}

void sapwood_events_make(void)
{
    const char *asked = getenv("SAPWOOD_MPI_WAITS");
    sapwood_spaces_begin();
    ring_records = records_asked();
    events_fd = make_file();
    /* The first one, whether or not the program uses it. */
    sapwood_space_seen(sapwood_library.comm_world);
    is_asked = events_fd >= 0 && (sapwood_are_files_kept() || (asked != NULL && strcmp(asked, "1") == 0));
    if (!is_asked)
        return;
    atomic_fetch_or(&sapwood_events->header.state, SAPWOOD_EVENTS_MESSAGES);
    sapwood_events_switch(true);
}

/* Writes one record; how many there are then. */
static SAPWOOD_HOT uint64_t put(struct sapwood_ring *ring, uint64_t first, uint64_t second, uint64_t third, uint64_t fourth)
{
    return sapwood_ring_put(ring, ring_records, (const uint64_t[4]){first, second, third, fourth});
}

/* A moment by both clocks, as close together as few tries allow. */
static __attribute__((noinline)) void put_clock(struct sapwood_ring *ring)
{
    uint64_t narrowest = UINT64_MAX, at = 0, at_ns = 0;
    for (int attempt = 0; attempt < 3; attempt++) {
        uint64_t before = sapwood_ticks(), ns = sapwood_monotonic_ns(), after = sapwood_ticks();
        if (after - before < narrowest) {
            narrowest = after - before;
            at = before + narrowest / 2;
            at_ns = ns;
        }
    }
    put(ring, at, at_ns, (uint64_t)SAPWOOD_EVENT_CLOCK << 16, 0);
}

/* The ring of this thread; none of those beyond the last one. A thread's activity is its own. */
static SAPWOOD_HOT struct sapwood_ring *own_ring(void)
{
    uintptr_t first = (uintptr_t)sapwood_table->activities, own = (uintptr_t)sapwood_activity_own();
    size_t place = (own - first) / sizeof(struct sapwood_activity);
    return place < SAPWOOD_RINGS ? rings[place] : NULL;
}

uint32_t sapwood_ring_head(uint32_t ring)
{
    return (uint32_t)READ(rings[ring]->head);
}

/* So that no call of this thread waits for the memory of its ring. */
static void touch_own_ring(void)
{
    struct sapwood_ring *ring = own_ring();
    for (size_t at = 0; ring != NULL && at < ring_bytes(); at += SAPWOOD_CONTROL_BYTES)
        ((volatile char *)ring)[at] = ((volatile char *)ring)[at];
}

static void switch_recording(bool on)
{
    _Atomic uint32_t *state = &sapwood_events->header.state;
    _Atomic uint64_t *paused_ns = &sapwood_events->header.paused_ns;
    if (!on) {
        /* A reader that sees that nothing is recorded sees since when. */
        if (READ(*state) & SAPWOOD_EVENTS_RECORDING) {
            atomic_store_explicit(paused_ns, sapwood_monotonic_ns(), memory_order_relaxed);
            atomic_fetch_and(state, ~(uint32_t)SAPWOOD_EVENTS_RECORDING);
        }
    } else if ((READ(*state) & SAPWOOD_EVENTS_RECORDING) == 0) {
        struct sapwood_ring *ring = own_ring();
        if (ring != NULL)
            put_clock(ring);
        atomic_fetch_or(state, SAPWOOD_EVENTS_RECORDING);
        atomic_store_explicit(paused_ns, 0, memory_order_relaxed);
    }
    /* Where messages are counted from the start they are counted on while nothing is recorded. */
    atomic_store_explicit(&sapwood_recording, READ(*state) & (SAPWOOD_EVENTS_RECORDING | SAPWOOD_EVENTS_MESSAGES),
                          memory_order_release);
    switch_hops(on);
}

void sapwood_events_switch(bool on)
{
    if (sapwood_events == NULL)
        return;
    if (on && !is_switched_on)
        touch_own_ring();
    is_switched_on = on;
    switch_recording(on && !is_held);
}

void sapwood_events_hold(bool held)
{
    is_held = held;
    if (sapwood_events != NULL)
        switch_recording(is_switched_on && !held);
}

void sapwood_events_lose_order(void)
{
    if (sapwood_events != NULL)
        atomic_fetch_or(&sapwood_events->header.state, SAPWOOD_EVENTS_ORDER_LOST);
}

void sapwood_events_lose_messages(void)
{
    if (sapwood_events != NULL && (READ(sapwood_events->header.state) & SAPWOOD_EVENTS_MESSAGES_LOST) == 0)
        atomic_fetch_or(&sapwood_events->header.state, SAPWOOD_EVENTS_MESSAGES_LOST);
}

void sapwood_events_finalize(void)
{
    switch_hops(false);
    if (sapwood_events != NULL)
        atomic_fetch_or(&sapwood_events->header.state, SAPWOOD_EVENTS_FINALIZED);
}

/* Counts a record that is not written. */
static __attribute__((noinline)) void leave_out(const struct sapwood_space *space)
{
    struct sapwood_events_header *header = &sapwood_events->header;
    bool contended = sapwood_table->header.flags & SAPWOOD_FLAG_THREAD_MULTIPLE;
    sapwood_add(space == &sapwood_no_space ? &header->without_space : &header->without_ring, 1, contended);
}

void sapwood_record_words(const struct sapwood_space *space, uint64_t begin, uint64_t timing, uint64_t what,
                          uint64_t whom)
{
    if ((READ(sapwood_recording) & SAPWOOD_EVENTS_RECORDING) == 0)
        return;
    struct sapwood_ring *ring = own_ring();
    if (__builtin_expect(ring == NULL || space == &sapwood_no_space, 0)) {
        leave_out(space);
        return;
    }
    uint64_t head = put(ring, begin, timing, (uint64_t)(space - sapwood_events->spaces) | what, whom);
    if (__builtin_expect(head % SAPWOOD_CLOCK_EVERY == 0, 0))
        put_clock(ring);
}
