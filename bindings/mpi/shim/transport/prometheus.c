/* One file per rank for the textfile collector of Prometheus's node_exporter,
 * sapwood-rank-<rank>.prom, with at most 3 + 3 * EVENTS_MAX series. Gauges only; the events that
 * came first have series, the others are counted. */
#include "observe.h"
#include "transport.h"

enum { EVENTS_MAX = 600 };

static void put_label(FILE *file, const char *text)
{
    for (int length; *text != '\0'; text += length) {
        length = sapwood_utf8_length(text);
        if (length == 0) {
            /* No reader would take it. */
            fprintf(file, "\\\\x%02x", (unsigned char)*text);
            length = 1;
        } else if (*text == '\\' || *text == '"') {
            fprintf(file, "\\%c", *text);
        } else if (*text == '\n') {
            fputs("\\n", file);
        } else {
            fwrite(text, 1, (size_t)length, file);
        }
    }
}

static void put_family(FILE *file, uint32_t used, const char *name, const char *help, char metric)
{
    struct sapwood_event event;
    fprintf(file, "# HELP sapwood_mpi_rank_%s %s\n# TYPE sapwood_mpi_rank_%s gauge\n", name, help, name);
    for (uint32_t place = 0, events = 0; place < used && events < EVENTS_MAX; place++) {
        if (!sapwood_transport_event(place, &event))
            continue;
        events++;
        fprintf(file, "sapwood_mpi_rank_%s{rank=\"%u\",event=\"", name, sapwood_table->header.world_rank);
        put_label(file, event.name);
        fprintf(file, "\",class=\"%s\",communicator_size=\"%s\"} ", event.class, event.sizes);
        if (metric == 's')
            fprintf(file, "%.9f\n", (double)event.time_ns / 1e9);
        else
            fprintf(file, "%llu\n", (unsigned long long)(metric == 'c' ? event.count : event.bytes));
    }
}

static void put_own(FILE *file, const char *name, const char *help, double value)
{
    fprintf(file, "# HELP sapwood_mpi_rank_%s %s\n# TYPE sapwood_mpi_rank_%s gauge\n", name, help, name);
    fprintf(file, "sapwood_mpi_rank_%s{rank=\"%u\"} %.9g\n", name, sapwood_table->header.world_rank, value);
}

static void fill(FILE *file)
{
    const struct sapwood_header *header = &sapwood_table->header;
    uint32_t used = atomic_load_explicit(&header->slots_used, memory_order_acquire);
    double wall = (double)(sapwood_monotonic_ns() - header->started_ns) / 1e9;
    uint32_t state = atomic_load_explicit(&header->state, memory_order_relaxed);
    put_own(file, "seconds", "Time since the rank began to count", wall);
    put_own(file, "state", "1 running, 2 finalized, 3 exited without MPI_Finalize", state);
    put_own(file, "events_left_out", "Events without series because of the bound",
            used > EVENTS_MAX ? used - EVENTS_MAX : 0);
    put_family(file, used, "calls", "Calls that returned", 'c');
    put_family(file, used, "time_seconds", "Inclusive time of these calls", 's');
    put_family(file, used, "bytes", "Bytes of these calls", 'b');
}

static void offload_prometheus(void)
{
    char name[64];
    snprintf(name, sizeof name, "sapwood-rank-%u.prom", sapwood_table->header.world_rank);
    sapwood_transport_write(name, fill);
}

static bool open_prometheus(int table_fd, const char **reason)
{
    (void)table_fd;
    (void)reason;
    return true;
}

static const struct sapwood_transport prometheus = {
    .name = "prometheus", .open = open_prometheus, .offload = offload_prometheus};
SAPWOOD_TRANSPORT(prometheus);
