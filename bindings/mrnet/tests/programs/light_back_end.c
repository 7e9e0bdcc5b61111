/*
 * The same back-end in C, which uses every function of the C interface.
 */
#include <unistd.h>

#include "mrnet_lightweight/MRNet.h"
#include "protocol.h"

#define STREAM Stream_t *
#define PACKET Packet_t *
#define SEND(stream, ...) Stream_send(stream, __VA_ARGS__)
#define UNPACK(packet, ...) Packet_unpack(packet, __VA_ARGS__)
#include "directives.h"

#define DEMAND(condition)                                                          \
    do {                                                                           \
        if (!(condition)) {                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            return 1;                                                              \
        }                                                                          \
    } while (0)

static Packet_t *made(unsigned int stream, int tag, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    Packet_t *packet = new_Packet_t(0, stream, tag, format, values);
    va_end(values);
    return packet;
}

static int unpacked(Packet_t *packet, const char *format, ...)
{
    va_list places;
    va_start(places, format);
    int result = Packet_unpack_valist(packet, places, format);
    va_end(places);
    return result;
}

static int inspect_packets(Stream_t *stream)
{
    int number = 0;
    uint32_t count = 2;
    int32_t *payload = malloc(count * sizeof *payload);
    payload[0] = payload[1] = 7;
    Packet_t *packet = made(Stream_get_Id(stream), TAG_SUM, "%d", 5);
    DEMAND(packet != NULL && unpacked(packet, "%d", &number) == 0 && number == 5);
    Packet_set_Tag(packet, TAG_RANK);
    Packet_set_StreamId(packet, 3);
    DEMAND(Packet_get_Tag(packet) == TAG_RANK && Packet_get_StreamId(packet) == 3);
    DEMAND(strcmp(Packet_get_FormatString(packet), "%d") == 0);
    DEMAND(Packet_unpack(packet, "%lf", &number) == -1);
    delete_Packet_t(packet);
    packet = new_Packet_t_2(Stream_get_Id(stream), TAG_SUM, "%ad", payload, count);
    Packet_set_DestroyData(packet, 1);
    delete_Packet_t(packet);
    DEMAND(new_Packet_t_2(0, TAG_SUM, "%q", 1) == NULL);
    return 0;
}

static int inspect(Network_t *net, Stream_t *stream)
{
    NetworkTopology_t *topology = Network_get_NetworkTopology(net);
    unsigned int id = Stream_get_Id(stream);
    int tag;
    Packet_t none;
    Stream_t *from;
    Network_set_OutputLevel(0);
    Network_set_DebugLogDir("/tmp");
    DEMAND(topology != NULL && topology->num_nodes >= 2 && topology->rank == Network_get_LocalRank(net));
    Node_t *node = NetworkTopology_find_Node(topology, Network_get_LocalRank(net));
    DEMAND(node != NULL && NetworkTopology_Node_get_Rank(node) == topology->rank);
    DEMAND(NetworkTopology_Node_get_Parent(node) == topology->parent);
    DEMAND(NetworkTopology_Node_find_SubTreeHeight(node) == 0 && NetworkTopology_Node_get_Port(node) != UnknownPort);
    DEMAND(NetworkTopology_Node_get_HostName(node)[0] != '\0');
    node = NetworkTopology_get_Root(topology);
    DEMAND(node != NULL && NetworkTopology_Node_get_Parent(node) == UnknownRank);
    DEMAND(NetworkTopology_Node_find_SubTreeHeight(node) >= 1);
    DEMAND(NetworkTopology_get_NumNodes(topology) == topology->num_nodes);
    DEMAND(NetworkTopology_find_Node(topology, 777777) == NULL);
    DEMAND(Network_get_LocalHostName(net)[0] != '\0' && Network_get_LocalPort(net) != UnknownPort);
    DEMAND(!Network_is_ShutDown(net) && !Stream_is_Closed(stream) && !Stream_is_ShutDown(stream));
    DEMAND(Network_get_Stream(net, id) == stream);
    DEMAND(Network_new_Stream(net, id, NULL, 0, 0, 0, 0) == stream);
    DEMAND(Network_recv_nonblock(net, &tag, &none, &from) == 0);
    DEMAND(Stream_recv(stream, &tag, &none, 0) == 0);
    Network_new_Stream(net, id + 1000, NULL, 0, 0, 0, 0);
    Network_delete_Stream(net, id + 1000);
    DEMAND(Network_get_Stream(net, id + 1000) == NULL);
    Stream_t *other = Network_new_Stream(net, id + 2000, NULL, 0, 0, 0, 0);
    DEMAND(Stream_send(other, TAG_SUM, "%d", 1) == -1);
    DEMAND(Stream_send(stream, FirstApplicationTag - 1, "%d", 1) == -1);
    DEMAND(Stream_send(stream, INT32_MAX, "%d", 1) == -1 && Stream_send(stream, -1, "%d", 1) == -1);
    delete_Stream_t(other);
    return inspect_packets(stream);
}

static int answer(Network_t *net, Stream_t *stream, int tag, Packet_t *packet)
{
    Rank rank = Network_get_LocalRank(net);
    int number = 0;
    if (tag >= TAG_DIRECTIVE && tag < TAG_DIRECTIVE + DIRECTIVES) {
        DEMAND(check_directive(packet, tag - TAG_DIRECTIVE));
        return send_directive(stream, tag - TAG_DIRECTIVE);
    }
    switch (tag) {
    case TAG_SUM:
        DEMAND(Packet_unpack(packet, "%d", &number) == 0);
        return Stream_send_packet(stream, packet);
    case TAG_TWICE:
        DEMAND(Packet_unpack(packet, "%d", &number) == 0);
        return Stream_send(stream, tag, "%d", number) | Stream_send(stream, tag, "%d", number);
    case TAG_RANK: return Stream_send(stream, tag, "%ud", rank);
    case TAG_CLASS: {
        uint32_t modulus = 1, one = 1;
        DEMAND(Packet_unpack(packet, "%ud", &modulus) == 0);
        uint32_t value = rank % modulus;
        return Stream_send(stream, tag, "%aud %aud %aud", &value, one, &one, one, &rank, one);
    }
    case TAG_BAD: return Stream_send(stream, tag, "%d", Stream_send(stream, tag, "%q", 1) == -1);
    case TAG_MIXED:
        return rank == 0 ? Stream_send(stream, tag, "%d", 1) : Stream_send(stream, tag, "%lf", 1.0);
    case TAG_ARRAY: {
        int ranks[64];
        DEMAND(Packet_unpack(packet, "%d", &number) == 0 && number <= 64);
        for (int at = 0; at < number; at++)
            ranks[at] = (int)rank;
        return Stream_send(stream, tag, "%ad", ranks, (uint32_t)number);
    }
    case TAG_SLOW:
        DEMAND(Packet_unpack(packet, "%d", &number) == 0);
        if (rank == 0)
            usleep((useconds_t)number * 1000);
        /* The stream may have been closed meanwhile. */
        (void)Stream_send(stream, tag, "%d", 1);
        return 0;
    case TAG_INSPECT: return Stream_send(stream, tag, "%d", inspect(net, stream) == 0 ? 1 : 0);
    case TAG_EMPTY: {
        Packet_t *empty = new_Packet_t_2(Stream_get_Id(stream), tag, NULL);
        DEMAND(empty != NULL && Packet_get_FormatString(empty)[0] == '\0');
        number = Stream_send_packet(stream, empty) | Stream_send(stream, tag, "");
        delete_Packet_t(empty);
        return number | Stream_send(stream, tag, NULL);
    }
    case TAG_FILTERS:
        return Stream_send(stream, tag, "%ud %ud %ud", stream->us_filter_id, stream->sync_filter_id,
                           stream->ds_filter_id);
    case TAG_LEAVE: _exit(0);
    default: return 0;
    }
}

int main(int argc, char *argv[])
{
    Network_t *net = Network_CreateNetworkBE(argc, argv);
    Packet_t *packet = calloc(1, sizeof *packet);
    int tag = 0;
    if (net == NULL || packet == NULL) {
        free(packet);
        return 1;
    }
    while (tag != TAG_EXIT) {
        Stream_t *stream;
        if (Network_recv(net, &tag, packet, &stream) != 1)
            break;
        if (answer(net, stream, tag, packet) != 0 && !Stream_is_Closed(stream)) {
            fprintf(stderr, "light_back_end %u: tag %d failed\n", Network_get_LocalRank(net), tag);
            return 1;
        }
        Stream_flush(stream);
    }
    Network_waitfor_ShutDown(net);
    delete_Packet_t(packet);
    delete_Network_t(net);
    return 0;
}
