/* See transport.h. Owns the choice of a transport, the thread that offloads from time
 * to time if that was asked for, and what several transports need to write text. */
#define _GNU_SOURCE
#include "transport.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "file_limit.h"
#include "functions.h"
#include "observe.h"
#include "say.h"

typedef const struct sapwood_transport *const *transport_list;

/* The linker's names for the two ends of the list. */
extern const struct sapwood_transport *const __start_sapwood_transports[];
extern const struct sapwood_transport *const __stop_sapwood_transports[];

static const struct sapwood_transport *chosen;

static const struct {
    const char *name;
    const char *class;
} functions[SAPWOOD_FUNCTION_IDS] = {SAPWOOD_FUNCTION_NAMES};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_over;
static pthread_t thread;
static bool has_thread, ends;
static double interval;

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && *value != '\0' ? value : NULL;
}

bool sapwood_transport_is_chosen(void)
{
    return variable("SAPWOOD_MPI_TRANSPORT") != NULL;
}

static const struct sapwood_transport *transport_named(const char *name)
{
    for (transport_list one = __start_sapwood_transports; one < __stop_sapwood_transports; one++)
        if (strcmp((*one)->name, name) == 0)
            return *one;
    return NULL;
}

/* "tree" is what is there without a choice. */
static bool choose(const char **reason)
{
    static char unknown[256];
    const char *name = variable("SAPWOOD_MPI_TRANSPORT");
    chosen = transport_named(name == NULL ? "tree" : name);
    if (chosen != NULL)
        return true;
    int used = snprintf(unknown, sizeof unknown, "there is no transport '%.32s'; set SAPWOOD_MPI_TRANSPORT to",
                        name);
    for (transport_list one = __start_sapwood_transports; one < __stop_sapwood_transports; one++)
        if ((size_t)used < sizeof unknown)
            used += snprintf(unknown + used, sizeof unknown - (size_t)used, "%s %s",
                             one == __start_sapwood_transports ? "" : " or", (*one)->name);
    *reason = unknown;
    return false;
}

static bool read_interval(const char **reason)
{
    const char *text = variable("SAPWOOD_MPI_TRANSPORT_INTERVAL");
    if (text == NULL)
        return true;
    char *end;
    interval = strtod(text, &end);
    if (end != text && *end == 's')
        end++;
    if (*end == '\0' && interval >= 0.01 && interval <= 86400)
        return true;
    *reason = "SAPWOOD_MPI_TRANSPORT_INTERVAL is to be a number of seconds from 0.01 to 86400, such as 10";
    return false;
}

/* The folder of those that write files. */
static const char *directory(void)
{
    const char *named = variable("SAPWOOD_MPI_TRANSPORT_DIR");
    return named == NULL ? "." : named;
}

/* What cannot be written is said when counting begins, not after a run of hours, and by each rank:
 * it may be so on its host only. */
static bool check_directory(const char **reason)
{
    if (chosen->offload == NULL || access(directory(), W_OK | X_OK) == 0)
        return true;
    sapwood_say("cannot write into '%.300s': %s; name another folder in SAPWOOD_MPI_TRANSPORT_DIR; "
                "the program runs on unobserved", directory(), strerror(errno));
    *reason = "";
    return false;
}

static void *offload_again(void *unused)
{
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    pthread_mutex_lock(&lock);
    while (!ends) {
        double whole = next.tv_nsec / 1e9 + interval;
        next.tv_sec += (time_t)whole;
        next.tv_nsec = (long)((whole - (double)(time_t)whole) * 1e9);
        int waited = 0;
        while (!ends && waited == 0)
            waited = pthread_cond_timedwait(&is_over, &lock, &next);
        if (!ends)
            chosen->offload();
    }
    pthread_mutex_unlock(&lock);
    return unused;
}

/* The program's signals are none of its business. */
static void start_thread(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&is_over, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    has_thread = pthread_create(&thread, NULL, offload_again, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!has_thread)
        sapwood_say("no thread for SAPWOOD_MPI_TRANSPORT_INTERVAL; counts are offloaded at the end only");
}

bool sapwood_transport_open(int table_fd, const char **reason)
{
    if (!choose(reason) || !read_interval(reason) || !check_directory(reason) || !chosen->open(table_fd, reason)) {
        chosen = NULL;
        return false;
    }
    if (interval > 0 && chosen->offload != NULL)
        start_thread();
    return true;
}

void sapwood_transport_end(void)
{
    if (chosen == NULL || chosen->offload == NULL)
        return;
    if (has_thread) {
        pthread_mutex_lock(&lock);
        ends = true;
        pthread_cond_signal(&is_over);
        pthread_mutex_unlock(&lock);
        pthread_join(thread, NULL);
        has_thread = false;
    }
    chosen->offload();
    chosen = NULL;
}

void sapwood_transport_forget(void)
{
    has_thread = false;
    if (chosen != NULL && chosen->forget != NULL)
        chosen->forget();
    chosen = NULL;
}

static void write_file(const char *name, void (*fill)(FILE *file))
{
    static bool is_said;
    char partial[4096], path[4096];
    int length = snprintf(path, sizeof path, "%s/%s", directory(), name);
    int partial_length = snprintf(partial, sizeof partial, "%s/.%s.partial", directory(), name);
    bool fits = length > 0 && partial_length > 0 && (size_t)partial_length < sizeof partial;
    errno = ENAMETOOLONG;
    FILE *file = fits ? fopen(partial, "we") : NULL;
    bool is_whole = false;
    if (file != NULL) {
        fill(file);
        is_whole = fflush(file) == 0 && !ferror(file);
        is_whole = fclose(file) == 0 && is_whole;
    }
    if (is_whole && rename(partial, path) == 0)
        return;
    int error = errno;
    if (file != NULL)
        unlink(partial);
    if (!is_said)
        sapwood_say("cannot write %.400s: %s; name another folder in SAPWOOD_MPI_TRANSPORT_DIR", path, strerror(error));
    is_said = true;
}

void sapwood_transport_write(const char *name, void (*fill)(FILE *file))
{
    struct sapwood_file_signal held;
    sapwood_file_signal_hold(&held);
    write_file(name, fill);
    sapwood_file_signal_release(&held);
}

static void tell_sizes(struct sapwood_event *event, unsigned class)
{
    event->sizes[0] = '\0';
    if (class > 31)
        return;
    uint64_t largest = UINT64_C(1) << class, smallest = class == 0 ? 1 : largest / 2 + 1;
    if (smallest == largest)
        snprintf(event->sizes, sizeof event->sizes, "%llu", (unsigned long long)largest);
    else
        snprintf(event->sizes, sizeof event->sizes, "%llu-%llu", (unsigned long long)smallest,
                 (unsigned long long)largest);
}

bool sapwood_transport_event(uint32_t place, struct sapwood_event *event)
{
    const struct sapwood_slot *slot = &sapwood_table->slots[place];
    uint64_t key = atomic_load_explicit(&slot->key, memory_order_relaxed);
    event->count = atomic_load_explicit(&slot->count, memory_order_relaxed);
    event->time_ns = atomic_load_explicit(&slot->time_ns, memory_order_relaxed);
    event->bytes = atomic_load_explicit(&slot->bytes, memory_order_relaxed);
    event->is_region = (key & SAPWOOD_KEY_REGION) != 0;
    if (event->is_region) {
        event->name = sapwood_table->names + (key & ~SAPWOOD_KEY_REGION);
        event->class = "region";
        event->sizes[0] = '\0';
    } else {
        uint64_t id = key >> 8;
        bool is_known = id < SAPWOOD_FUNCTION_IDS && functions[id].name != NULL;
        event->name = is_known ? functions[id].name : "unknown MPI function";
        event->class = is_known ? functions[id].class : "other";
        tell_sizes(event, (unsigned)(key & 0xff));
    }
    return event->count != 0 || event->time_ns != 0 || event->bytes != 0;
}

int sapwood_utf8_length(const char *text)
{
    const unsigned char *bytes = (const unsigned char *)text;
    uint32_t letter;
    int length;
    if (bytes[0] < 0x80)
        return 1;
    if ((bytes[0] & 0xe0) == 0xc0)
        letter = bytes[0] & 0x1f, length = 2;
    else if ((bytes[0] & 0xf0) == 0xe0)
        letter = bytes[0] & 0x0f, length = 3;
    else if ((bytes[0] & 0xf8) == 0xf0)
        letter = bytes[0] & 0x07, length = 4;
    else
        return 0;
    for (int at = 1; at < length; at++) {
        if ((bytes[at] & 0xc0) != 0x80)
            return 0;
        letter = letter << 6 | (bytes[at] & 0x3f);
    }
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    bool is_surrogate = letter >= 0xd800 && letter < 0xe000;
    return letter < smallest[length] || letter > 0x10ffff || is_surrogate ? 0 : length;
}
