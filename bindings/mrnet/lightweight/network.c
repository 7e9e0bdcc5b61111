/*
 * Networks in C, at a back-end: what comes is sorted by stream, and what the layer itself asks is
 * answered here.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "state.h"

/* The filter that a stream synchronises by where none is named. */
enum { SFILTER_WAITFORALL = 51 };
enum { USAGE_COLUMNS = 5, ROW_COLUMNS = 9, HOST_BYTES = 256, PATH_BYTES = 4096 };

#ifdef MRN_WITH_THREADS
/* How long a thread waits for the descriptor before it looks again, in milliseconds. */
enum { WAIT_MS = 50 };
#else
/* How long is waited for one stream before it is looked whether it has closed, in milliseconds. */
enum { SLICE_MS = 100 };
#endif

static int output_level;

void mrn_lock(struct mrn_state *state)
{
    pthread_mutex_lock(&state->mutex);
#ifdef MRN_WITH_THREADS
    sapwood_back_end_move_to_this_thread(state->back_end, NULL);
#endif
}

void mrn_unlock(struct mrn_state *state)
{
    pthread_mutex_unlock(&state->mutex);
}

void mrn_say(const char *text)
{
    if (output_level > 0)
        fprintf(stderr, "mrnet %d: %s\n", (int)getpid(), text);
}

void Network_set_OutputLevel(int level)
{
    output_level = level;
}

void Network_set_DebugLogDir(char *folder)
{
    /* Lines for people go to standard error, wherever that leads. */
    (void)folder;
}

Stream_t *mrn_stream(Network_t *net, uint32_t id)
{
    for (Stream_t *at = net->streams; at != NULL; at = at->next)
        if (at->id == id)
            return at;
    Stream_t *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    made->network = net;
    made->id = id;
    made->sync_filter_id = SFILTER_WAITFORALL;
    made->next = net->streams;
    net->streams = made;
    return made;
}

/* The front-end wants to send to single back-ends; one that has attached tells its rank. */
static void say_hello(Network_t *net, uint32_t stream, const sapwood_packet_t *packet)
{
    struct mrn_state *state = net->state;
    void *places[] = {&state->front_end};
    sapwood_packet_read_values(packet, "%ud", places, 1, NULL);
    state->direct_stream = stream;
    if (state->is_started)
        return;
    const void *values[] = {&net->local_rank, net->local_hostname, &state->parent};
    sapwood_back_end_send_values(state->back_end, stream, TAG_HELLO, "%ud %s %ud", values, 3,
                                 NULL);
    sapwood_back_end_flush(state->back_end, NULL);
}

static void tell_usage(Network_t *net, uint32_t stream)
{
    struct mrn_state *state = net->state;
    double row[ROW_COLUMNS] = {0};
    uint32_t own = sapwood_back_end_rank(state->back_end), one = 1, columns = ROW_COLUMNS;
    sapwood_usage(row, NULL);
    memcpy(row + USAGE_COLUMNS, state->traffic, sizeof state->traffic);
    const void *values[] = {&own, &one, row, &columns};
    sapwood_back_end_send_values(state->back_end, stream, TAG_USAGE, "%aud %alf", values, 4, NULL);
    sapwood_back_end_flush(state->back_end, NULL);
}

/* The number that `id => rank ; id => * ;` has for a rank; as it was if it has none. */
static void read_assigned(const char *text, Rank rank, unsigned int *id)
{
    unsigned int number, named;
    for (const char *at = text; at != NULL && *at != '\0'; at = strchr(at, ';'), at += at != NULL) {
        if (sscanf(at, " %u => %u", &number, &named) == 2) {
            if (named == rank) {
                *id = number;
                return;
            }
        } else if (sscanf(at, " %u => *", &number) == 1) {
            *id = number;
        }
    }
}

/* The front-end says which filters a stream has. */
static void learn_filters(Network_t *net, const sapwood_packet_t *packet)
{
    Stream_t *stream = mrn_stream(net, sapwood_packet_stream(packet));
    const char *up = NULL, *sync = NULL, *down = NULL;
    void *places[] = {&up, &sync, &down};
    if (stream == NULL || sapwood_packet_read_values(packet, "%s %s %s", places, 3, NULL) != SAPWOOD_OK)
        return;
    read_assigned(up, net->local_rank, &stream->us_filter_id);
    read_assigned(sync, net->local_rank, &stream->sync_filter_id);
    read_assigned(down, net->local_rank, &stream->ds_filter_id);
}

/* Keeps a packet for the tool, or does what the layer itself asks. */
static void sort(Network_t *net, sapwood_packet_t *packet)
{
    struct mrn_state *state = net->state;
    int tag = sapwood_packet_tag(packet);
    if (tag >= TAGS_OWN) {
        if (tag == TAG_HELLO)
            say_hello(net, sapwood_packet_stream(packet), packet);
        else if (tag == TAG_USAGE)
            tell_usage(net, sapwood_packet_stream(packet));
        else if (tag == TAG_FILTERS_ARE)
            learn_filters(net, packet);
        sapwood_packet_free(&packet);
        return;
    }
    struct mrn_arrival *arrival = calloc(1, sizeof *arrival);
    if (arrival == NULL) {
        sapwood_packet_free(&packet);
        return;
    }
    arrival->packet = packet;
    *state->last = arrival;
    state->last = &arrival->next;
    state->traffic[3] += 1;
}

/* What has happened to streams. */
static void collect(Network_t *net)
{
    struct mrn_state *state = net->state;
    sapwood_event_t event;
    while (sapwood_back_end_next_event(state->back_end, &event, NULL) == SAPWOOD_OK &&
           event.kind != SAPWOOD_EVENT_NONE) {
        Stream_t *stream;
        if (event.kind == SAPWOOD_EVENT_STREAM_OPENED)
            mrn_stream(net, event.stream);
        else if (event.kind == SAPWOOD_EVENT_STREAM_CLOSED)
            for (stream = net->streams; stream != NULL; stream = stream->next)
                stream->is_closed |= stream->id == event.stream;
    }
    state->has_ended = state->has_ended || sapwood_back_end_has_ended(state->back_end);
}

static sapwood_packet_t *take_queued(struct mrn_state *state, uint32_t only)
{
    for (struct mrn_arrival **at = &state->first; *at != NULL; at = &(*at)->next) {
        struct mrn_arrival *found = *at;
        sapwood_packet_t *packet = found->packet;
        if (only != 0 && sapwood_packet_stream(packet) != only)
            continue;
        *at = found->next;
        if (state->last == &found->next)
            state->last = at;
        free(found);
        return packet;
    }
    return NULL;
}

/* Reads what comes; -1 when nothing can come any more. */
static int read_more(Network_t *net, int milliseconds)
{
    struct mrn_state *state = net->state;
    sapwood_packet_t *packet = NULL;
    sapwood_error_t error;
    int code = milliseconds == 0
                   ? sapwood_back_end_try_recv(state->back_end, &packet, &error)
                   : sapwood_back_end_recv(state->back_end, &packet, milliseconds, &error);
    if (packet != NULL)
        sort(net, packet);
    else if (code != SAPWOOD_OK && code != SAPWOOD_ERROR_TIMEOUT)
        state->has_ended = 1;
    collect(net);
    return state->has_ended ? -1 : 0;
}

/* Whether nothing more comes, of one stream or, for 0, of any. */
static int is_over(Network_t *net, uint32_t only)
{
    Stream_t *stream = only == 0 ? NULL : mrn_stream(net, only);
    return net->state->has_ended || (stream != NULL && stream->is_closed);
}

int mrn_recv(Network_t *net, uint32_t only, int *tag, Packet_t *packet, Stream_t **stream,
             int is_blocking)
{
    struct mrn_state *state = net->state;
    sapwood_packet_t *came = NULL;
    int result = 0;
    mrn_lock(state);
    while ((came = take_queued(state, only)) == NULL && result == 0) {
        if (is_over(net, only)) {
            result = -1;
            break;
        }
#ifdef MRN_WITH_THREADS
        result = read_more(net, 0);
        if (result == 0 && is_blocking && (came = take_queued(state, only)) == NULL) {
            struct pollfd watched = {sapwood_back_end_descriptor(state->back_end), POLLIN, 0};
            mrn_unlock(state);
            poll(&watched, 1, WAIT_MS);
            mrn_lock(state);
        }
#else
        result = read_more(net, !is_blocking ? 0 : only == 0 ? -1 : SLICE_MS);
#endif
        if (came != NULL)
            break;
        if (!is_blocking) {
            came = take_queued(state, only);
            break;
        }
    }
    if (came != NULL) {
        Stream_t *from = mrn_stream(net, sapwood_packet_stream(came));
        result = from == NULL ? -1 : mrn_fill(net, packet, came, Stream_get_Id(from));
        if (result == 1 && tag != NULL)
            *tag = packet->tag;
        if (stream != NULL)
            *stream = from;
        if (result == 1)
            state->traffic[2] += (double)mrn_payload_bytes(&packet->contents->values);
    }
    mrn_unlock(state);
    return result;
}

int Network_recv(Network_t *net, int *tag, Packet_t *packet, Stream_t **stream)
{
    return mrn_recv(net, 0, tag, packet, stream, 1);
}

int Network_recv_nonblock(Network_t *net, int *tag, Packet_t *packet, Stream_t **stream)
{
    return mrn_recv(net, 0, tag, packet, stream, 0);
}

/* Where attached back-ends look, by the port that they are given; as in src/types.cpp. */
static void attach_path(char *path, unsigned int port)
{
    const char *given = getenv("XDG_RUNTIME_DIR");
    if (given != NULL && given[0] == '/')
        snprintf(path, PATH_BYTES, "%s/sapwood/mrnet-%u", given, port);
    else
        snprintf(path, PATH_BYTES, "/tmp/sapwood-%u/mrnet-%u", (unsigned)geteuid(), port);
}

static void read_topology(Network_t *net)
{
    NetworkTopology_t *known = net->network_topology;
    const char *text = net->state->is_started ? getenv("SAPWOOD_MRNET_TOPOLOGY") : NULL;
    sapwood_topology_t *topology = NULL;
    sapwood_topology_node_t node;
    known->rank = net->local_rank;
    known->parent = net->state->parent;
    known->root = UnknownRank;
    if (text == NULL || sapwood_topology_read(&topology, NULL, text, 0, NULL) != SAPWOOD_OK) {
        mrn_add_node(known, net->local_hostname, known->parent, UnknownRank, 0);
        mrn_add_node(known, net->local_hostname, known->rank, known->parent, 1);
        return;
    }
    for (size_t at = 0; at < sapwood_topology_size(topology); at++) {
        sapwood_topology_node(topology, at, &node, NULL);
        Rank parent = node.role == SAPWOOD_ROLE_FRONT_END ? UnknownRank : node.parent;
        if (mrn_add_node(known, node.host, node.rank, parent, node.role == SAPWOOD_ROLE_BACK_END) != 0)
            break;
    }
    sapwood_topology_free(&topology);
}

static int attach(Network_t *net, unsigned int parent_port)
{
    sapwood_error_t error;
    char path[PATH_BYTES];
    const char *started = getenv("SAPWOOD_RANK");
    struct mrn_state *state = net->state;
    state->is_started = getenv("SAPWOOD_PARENT") != NULL && started != NULL &&
                        strtoul(started, NULL, 10) == net->local_rank;
    attach_path(path, parent_port);
    int code = state->is_started ? sapwood_back_end_attach(&state->back_end, &error)
                                 : sapwood_back_end_attach_by_file(&state->back_end, path,
                                                                   SAPWOOD_ANY_RANK, &error);
    if (code != SAPWOOD_OK)
        fprintf(stderr, "mrnet: back-end %u: %s\n", net->local_rank, error.text);
    return code == SAPWOOD_OK;
}

Network_t *Network_CreateNetworkBE(int argc, char *argv[])
{
    if (argc < 6 || argv == NULL)
        return NULL;
    char **place = argv + argc - 5;
    Network_t *net = calloc(1, sizeof *net);
    if (net == NULL)
        return NULL;
    net->state = calloc(1, sizeof *net->state);
    net->network_topology = mrn_new_topology();
    net->local_hostname = calloc(1, HOST_BYTES);
    if (net->state == NULL || net->network_topology == NULL || net->local_hostname == NULL) {
        delete_Network_t(net);
        return NULL;
    }
    net->state->last = &net->state->first;
    pthread_mutex_init(&net->state->mutex, NULL);
    gethostname(net->local_hostname, HOST_BYTES - 1);
    net->local_rank = (Rank)strtoul(place[4], NULL, 10);
    net->state->parent = (Rank)strtoul(place[2], NULL, 10);
    if (!attach(net, (unsigned int)strtoul(place[1], NULL, 10))) {
        delete_Network_t(net);
        return NULL;
    }
    read_topology(net);
    return net;
}

void delete_Network_t(Network_t *net)
{
    if (net == NULL)
        return;
    if (net->state != NULL) {
        sapwood_packet_t *left;
        while (net->state->first != NULL && (left = take_queued(net->state, 0)) != NULL)
            sapwood_packet_free(&left);
        /* The caller's packets stay readable, and are the caller's to delete. */
        for (struct mrn_contents *at = net->state->filled; at != NULL; at = at->next)
            at->before = NULL;
        if (net->state->back_end != NULL) {
            mrn_lock(net->state);
            sapwood_back_end_close(&net->state->back_end, NULL);
            mrn_unlock(net->state);
        }
        pthread_mutex_destroy(&net->state->mutex);
    }
    while (net->streams != NULL) {
        Stream_t *next = net->streams->next;
        free(net->streams);
        net->streams = next;
    }
    mrn_delete_topology(net->network_topology);
    free(net->local_hostname);
    free(net->state);
    free(net);
}

char *Network_get_LocalHostName(Network_t *net)
{
    return net->local_hostname;
}

Port Network_get_LocalPort(Network_t *net)
{
    return net->local_port;
}

Rank Network_get_LocalRank(Network_t *net)
{
    return net->local_rank;
}

NetworkTopology_t *Network_get_NetworkTopology(Network_t *net)
{
    return net->network_topology;
}

char Network_is_ShutDown(Network_t *net)
{
    mrn_lock(net->state);
    if (!net->state->has_ended)
        read_more(net, 0);
    char has_ended = net->state->has_ended;
    mrn_unlock(net->state);
    return has_ended;
}

void Network_waitfor_ShutDown(Network_t *net)
{
    mrn_lock(net->state);
    while (!net->state->has_ended) {
#ifdef MRN_WITH_THREADS
        struct pollfd watched = {sapwood_back_end_descriptor(net->state->back_end), POLLIN, 0};
        mrn_unlock(net->state);
        poll(&watched, 1, WAIT_MS);
        mrn_lock(net->state);
        read_more(net, 0);
#else
        read_more(net, -1);
#endif
    }
    mrn_unlock(net->state);
}

Stream_t *Network_get_Stream(Network_t *net, unsigned int id)
{
    Stream_t *found = NULL;
    Network_is_ShutDown(net);
    mrn_lock(net->state);
    for (Stream_t *at = net->streams; at != NULL && found == NULL; at = at->next)
        if (Stream_get_Id(at) == id)
            found = at;
    mrn_unlock(net->state);
    return found;
}

Stream_t *Network_new_Stream(Network_t *net, unsigned int id, Rank *back_ends,
                             unsigned int back_end_count, int up, int sync, int down)
{
    (void)back_ends, (void)back_end_count, (void)up, (void)sync, (void)down;
    mrn_lock(net->state);
    Stream_t *stream = mrn_stream(net, id - USER_STREAM_BASE);
    mrn_unlock(net->state);
    return stream;
}

void Network_delete_Stream(Network_t *net, unsigned int id)
{
    delete_Stream_t(Network_get_Stream(net, id));
}
