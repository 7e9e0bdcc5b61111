/*
 * Round trips of a small wave, in turns: a number down, the sum of all back-ends up.
 *
 *     round_trip TOPOLOGY-TEXT TAG BACK-END [ARGUMENT...]
 *
 * Back-ends send a packet of that tag back.
 */
#include "answer.hpp"
#include "turns.hpp"

using namespace MRN;

namespace {

int ask(Stream* stream, int asked, int number)
{
    PacketPtr packet;
    int tag, sum = 0;
    DEMAND(stream->send(asked, "%d", number) == 0 && stream->flush() == 0);
    DEMAND(stream->recv(&tag, packet) == 1 && packet->unpack("%d", &sum) == 0);
    DEMAND(sum == number * int(stream->size()));
    return 0;
}

}  // namespace

int main(int argc, char* argv[])
{
    DEMAND(argc >= 4);
    int tag = atoi(argv[2]);
    const char** arguments = const_cast<const char**>(argv + 4);
    Network* net = Network::CreateNetworkFE(argv[1], argv[3], arguments, NULL, true, true);
    if (net->has_Error())
        net->print_error("round_trip");
    DEMAND(!net->has_Error());
    Stream* stream = net->new_Stream(net->get_BroadcastCommunicator(), TFILTER_SUM);
    DEMAND(take_turns([&](int number) { return ask(stream, tag, number) == 0; }));
    stream->send(TAG_EXIT, "");
    stream->flush();
    delete stream;
    delete net;
    return 0;
}
