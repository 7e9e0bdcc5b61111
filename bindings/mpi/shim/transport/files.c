/* One file per rank in the layout of TAU's profiles, profile.<rank>.0.0, which pprof,
 * paraprof, Hatchet and others read; docs/monitor-outputs.md says what each line holds. Times
 * are in microseconds. */
#include <string.h>

#include "observe.h"
#include "transport.h"

#define ROOT ".TAU application"

/* A name without what readers take for a sign of their own; see tau.rs of tools/export. */
static void put_name(FILE *file, const struct sapwood_event *event)
{
    const char *name = event->name;
    char before = '\0';
    for (int length; *name != '\0'; before = name[length - 1], name += length) {
        length = sapwood_utf8_length(name);
        unsigned char first = (unsigned char)*name;
        bool is_control = length == 1 ? first < 0x20 || first == 0x7f
                                      : length == 2 && first == 0xc2 && (unsigned char)name[1] < 0xa0;
        bool is_sign = first == '"' || (first == '>' && before == '=') ||
                       ((first == '{' || first == '@') && before == '[') ||
                       (first == 'C' && before == ' ' && name[1] == ' ');
        if (length == 0 || is_control || is_sign) {
            fprintf(file, "\\x%02x", length == 2 ? (unsigned char)name[1] : first);
            length = length == 0 ? 1 : length;
        } else if (first == '\\') {
            fputs("\\\\", file);
        } else {
            fwrite(name, 1, (size_t)length, file);
        }
    }
    if (event->sizes[0] != '\0')
        fprintf(file, " (%s)", event->sizes);
}

static void put_event(FILE *file, const struct sapwood_event *event, const char *root, const char *group)
{
    unsigned long long us = event->time_ns / 1000;
    fprintf(file, "\"%s", root);
    put_name(file, event);
    fprintf(file, "\" %llu 0 %llu %llu 0 GROUP=\"%s%s\"\n", (unsigned long long)event->count,
            event->is_region ? 0 : us, us, event->is_region ? "TAU_USER" : "MPI", group);
}

static void put_events(FILE *file, uint32_t used, const char *root, const char *group)
{
    struct sapwood_event event;
    for (uint32_t place = 0; place < used; place++)
        if (sapwood_transport_event(place, &event))
            put_event(file, &event, root, group);
}

static void put_bytes(FILE *file, uint32_t used)
{
    struct sapwood_event event;
    uint32_t events = 0;
    for (uint32_t place = 0; place < used; place++)
        events += sapwood_transport_event(place, &event) && event.bytes > 0;
    fprintf(file, "0 aggregates\n%u userevents\n# eventname numevents max min mean sumsqr\n", events);
    for (uint32_t place = 0; place < used; place++) {
        /* A rank that runs meanwhile has no event whose bytes become fewer, but new ones. */
        if (!sapwood_transport_event(place, &event) || event.bytes == 0 || events == 0)
            continue;
        unsigned long long bytes = event.bytes;
        fputs("\"Bytes of ", file);
        put_name(file, &event);
        fprintf(file, "\" 1 %llu %llu %llu %.17g\n", bytes, bytes, bytes, (double)bytes * (double)bytes);
        events--;
    }
}

static void fill(FILE *file)
{
    const struct sapwood_header *header = &sapwood_table->header;
    uint32_t used = atomic_load_explicit(&header->slots_used, memory_order_acquire);
    unsigned long long calls = 0, mpi_us = 0, init_us = 0;
    struct sapwood_event event;
    for (uint32_t place = 0; place < used; place++) {
        if (!sapwood_transport_event(place, &event))
            continue;
        calls++;
        mpi_us += event.is_region ? 0 : event.time_ns / 1000;
        /* It was before counting began. */
        init_us += strncmp(event.name, "MPI_Init", 8) == 0 ? event.time_ns / 1000 : 0;
    }
    unsigned long long wall_us = (sapwood_monotonic_ns() - header->started_ns) / 1000 + init_us;
    wall_us = wall_us < mpi_us ? mpi_us : wall_us;
    fprintf(file, "%llu templated_functions_MULTI_TIME\n", 1 + 2 * calls);
    fprintf(file,
            "# Name Calls Subrs Excl Incl ProfileCalls # <metadata><attribute><name>Metric Name</name>"
            "<value>TIME</value></attribute><attribute><name>Hostname</name><value>%s</value></attribute>"
            "<attribute><name>pid</name><value>%u</value></attribute></metadata>\n",
            header->host, header->pid);
    fprintf(file, "\"" ROOT "\" 1 %llu %llu %llu 0 GROUP=\"TAU_DEFAULT\"\n", calls, wall_us - mpi_us, wall_us);
    put_events(file, used, "", "");
    put_events(file, used, ROOT " => ", "|TAU_CALLPATH");
    put_bytes(file, used);
}

static void offload_files(void)
{
    char name[64];
    snprintf(name, sizeof name, "profile.%u.0.0", sapwood_table->header.world_rank);
    sapwood_transport_write(name, fill);
}

static bool open_files(int table_fd, const char **reason)
{
    (void)table_fd;
    (void)reason;
    return true;
}

static const struct sapwood_transport files = {.name = "files", .open = open_files, .offload = offload_files};
SAPWOOD_TRANSPORT(files);
