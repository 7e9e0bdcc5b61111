/*
 * A back-end of style_front_end, in C++.
 */
#include "answer.hpp"
#include "style.h"

using namespace MRN;

namespace {

int answer(Stream* stream, int tag, PacketPtr& packet)
{
    int number = 0;
    DEMAND(packet->unpack("%d", &number) == 0);
    if (tag == STYLE_ECHO)
        return stream->send(tag, "%d", number);
    for (int wave = 0; wave < number; wave++) {
        DEMAND(stream->send(tag, "%d", wave) == 0);
        if (tag == STYLE_FLUSHED)
            DEMAND(stream->flush() == 0);
    }
    return 0;
}

}  // namespace

int main(int argc, char* argv[])
{
    Network* net = Network::CreateNetworkBE(argc, argv);
    if (net == NULL || net->has_Error())
        return 1;
    for (;;) {
        Stream* stream = NULL;
        PacketPtr packet;
        int tag;
        if (net->recv(&tag, packet, &stream) != 1 || tag == STYLE_EXIT)
            break;
        DEMAND(answer(stream, tag, packet) == 0 && stream->flush() == 0);
    }
    net->waitfor_ShutDown();
    delete net;
    return 0;
}
