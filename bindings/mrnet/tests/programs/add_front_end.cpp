/*
 * Integer addition, as MRNet's users know it: each back-end sends a number, the tree adds them.
 *
 *     add_front_end TOPOLOGY BACK-END
 */
#include <cstdio>

#include "mrnet/MRNet.h"

using namespace MRN;

enum { PROT_SUM = FirstApplicationTag, PROT_EXIT };

int main(int argc, char* argv[])
{
    const char* no_arguments[] = {NULL};
    if (argc != 3)
        return 2;
    Network* net = Network::CreateNetworkFE(argv[1], argv[2], no_arguments);
    if (net->has_Error()) {
        net->perror("add_front_end");
        return 1;
    }
    Communicator* everyone = net->get_BroadcastCommunicator();
    Stream* stream = net->new_Stream(everyone, TFILTER_SUM, SFILTER_WAITFORALL);
    unsigned int count = everyone->size();
    int tag, sum, bad = 0;
    for (int wave = 1; wave <= 5; wave++) {
        PacketPtr packet;
        if (stream->send(PROT_SUM, "%d %d", 17, wave) == -1 || stream->flush() == -1)
            return 1;
        if (stream->recv(&tag, packet) != 1 || packet->unpack("%d", &sum) == -1)
            return 1;
        if (tag != PROT_SUM || sum != int(count) * 17 * wave) {
            fprintf(stderr, "wave %d: tag %d, sum %d\n", wave, tag, sum);
            bad = 1;
        }
    }
    if (stream->send(PROT_EXIT, "") == -1 || stream->flush() == -1)
        return 1;
    delete stream;
    delete net;
    printf("%u back-ends\n", count);
    return bad;
}
