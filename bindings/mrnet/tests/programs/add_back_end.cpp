/*
 * The back-end of integer addition.
 */
#include "mrnet/MRNet.h"

using namespace MRN;

enum { PROT_SUM = FirstApplicationTag, PROT_EXIT };

int main(int argc, char* argv[])
{
    Network* net = Network::CreateNetworkBE(argc, argv);
    if (net == NULL || net->has_Error())
        return 1;
    int tag = 0;
    do {
        Stream* stream;
        PacketPtr packet;
        if (net->recv(&tag, packet, &stream) != 1)
            break;
        int number, times;
        if (tag == PROT_SUM) {
            if (packet->unpack("%d %d", &number, &times) == -1 ||
                stream->send(tag, "%d", number * times) == -1 || stream->flush() == -1)
                return 1;
        }
    } while (tag != PROT_EXIT);
    net->waitfor_ShutDown();
    delete net;
    return 0;
}
