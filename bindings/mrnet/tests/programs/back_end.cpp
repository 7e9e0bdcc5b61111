/*
 * A back-end in C++ that does what protocol.h says, and looks at all that a back-end can ask.
 */
#include <poll.h>

#include "answer.hpp"

using namespace MRN;

namespace {

/* Whether the network says of this process what is so. */
int inspect(Network* net, Stream* stream, Rank rank)
{
    NetworkTopology* topology = net->get_NetworkTopology();
    DEMAND(topology != NULL && topology->get_NumNodes() >= 2 && topology->find_Node(rank) != NULL);
    DEMAND(net->get_LocalRank() == rank && !net->get_LocalHostName().empty());
    DEMAND(net->get_LocalPort() != UnknownPort);
    DEMAND(net->is_LocalNodeBackEnd() && net->is_LocalNodeChild() && !net->is_LocalNodeParent());
    DEMAND(!net->is_LocalNodeFrontEnd() && !net->is_LocalNodeInternal() && !net->is_ShutDown());
    DEMAND(net->get_Stream(stream->get_Id()) == stream && !stream->is_Closed());
    DEMAND(stream->get_EndPoints().count(rank) == 1 && stream->size() == 1);
    DEMAND(net->flush() == 0 && stream->flush() == 0);
    DEMAND(net->new_Stream(net->get_BroadcastCommunicator()) == NULL && net->has_Error());
    int descriptor = stream->get_DataNotificationFd();
    pollfd watched = {descriptor, POLLIN, 0};
    DEMAND(descriptor >= 0 && poll(&watched, 1, 0) == 0);
    stream->clear_DataNotificationFd();
    stream->close_DataNotificationFd();
    return 0;
}

int answer(Network* net, Stream* stream, int tag, PacketPtr& packet)
{
    Rank rank = net->get_LocalRank();
    int number = 0;
    unsigned int modulus = 1;
    if (tag >= TAG_DIRECTIVE && tag < TAG_DIRECTIVE + DIRECTIVES) {
        DEMAND(check_directive(packet, tag - TAG_DIRECTIVE));
        return send_directive(stream, tag - TAG_DIRECTIVE);
    }
    switch (tag) {
    case TAG_SUM:
    case TAG_ECHO:
        DEMAND(packet->unpack("%d", &number) == 0);
        return stream->send(tag, "%d", number);
    case TAG_TWICE:
        DEMAND(packet->unpack("%d", &number) == 0);
        return stream->send(tag, "%d", number) | stream->send(tag, "%d", number);
    case TAG_RANK: return stream->send(tag, "%ud", rank);
    case TAG_CLASS: {
        DEMAND(packet->unpack("%ud", &modulus) == 0);
        uint32_t value = rank % modulus, one = 1;
        return stream->send(tag, "%aud %aud %aud", &value, one, &one, one, &rank, one);
    }
    case TAG_BAD:
        number = stream->send(tag, "%q", 1) == -1 && net->has_Error() &&
                 net->get_Error() == ERR_FORMATSTR;
        return stream->send(tag, "%d", number);
    case TAG_MIXED: return rank == 0 ? stream->send(tag, "%d", 1) : stream->send(tag, "%lf", 1.0);
    case TAG_ARRAY: {
        DEMAND(packet->unpack("%d", &number) == 0);
        std::vector<int> ranks;
        ranks.assign(size_t(number), int(rank));
        return stream->send(tag, "%ad", ranks.data(), uint32_t(ranks.size()));
    }
    case TAG_SLOW:
        DEMAND(packet->unpack("%d", &number) == 0);
        if (rank == 0)
            usleep(useconds_t(number) * 1000);
        /* The stream may have been closed meanwhile. */
        (void)stream->send(tag, "%d", 1);
        return 0;
    case TAG_INSPECT: return stream->send(tag, "%d", inspect(net, stream, rank) == 0 ? 1 : 0);
    case TAG_EMPTY: {
        PacketPtr empty(new Packet(stream->get_Id(), tag, NULL));
        DEMAND(!empty->has_Error() && stream->send(tag, NULL, NULL) == 0);
        return stream->send(empty) | stream->send(tag, NULL);
    }
    case TAG_LEAVE: _exit(0);
    default: return 0;
    }
}

}  // namespace

int main(int argc, char* argv[])
{
    Network* net = Network::CreateNetworkBE(argc, argv);
    if (net == NULL || net->has_Error()) {
        if (net != NULL)
            net->print_error("back_end");
        delete net;
        return 1;
    }
    int tag = 0;
    while (tag != TAG_EXIT) {
        Stream* stream = NULL;
        PacketPtr packet;
        if (net->recv(&tag, packet, &stream) != 1)
            break;
        if (answer(net, stream, tag, packet) != 0 && !stream->is_Closed()) {
            fprintf(stderr, "back_end %u: tag %d failed\n", net->get_LocalRank(), tag);
            delete net;
            return 1;
        }
        stream->flush();
    }
    net->waitfor_ShutDown();
    delete net;
    return 0;
}
