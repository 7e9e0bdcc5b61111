/*
 * Integer addition: each back-end adds its rank to a number, and the tree brings back one sum.
 *
 *     add TOPOLOGY-FILE
 */
#include <cstdio>
#include <cstring>

#include "mrnet/MRNet.h"

using namespace MRN;

enum { ADD = FirstApplicationTag, END };

static int back_end(int argc, char** argv)
{
    Network* network = Network::CreateNetworkBE(argc, argv);
    PacketPtr packet;
    Stream* stream;
    int tag, number;
    while (network->recv(&tag, packet, &stream) == 1 && tag == ADD) {
        packet->unpack("%d", &number);
        if (stream->send(ADD, "%d", number + int(network->get_LocalRank())) == -1)
            break;
        stream->flush();
    }
    network->waitfor_ShutDown();
    delete network;
    return 0;
}

static int front_end(const char* topology, const char* own)
{
    const char* arguments[] = {"back-end", NULL};
    Network* network = Network::CreateNetworkFE(topology, own, arguments);
    if (network->has_Error()) {
        network->perror("add");
        return 1;
    }
    Communicator* everyone = network->get_BroadcastCommunicator();
    Stream* stream = network->new_Stream(everyone, TFILTER_SUM, SFILTER_WAITFORALL);
    PacketPtr packet;
    int tag, sum, failed = 1;
    if (stream->send(ADD, "%d", 100) == 0 && stream->flush() == 0 &&
        stream->recv(&tag, packet) == 1 && packet->unpack("%d", &sum) == 0) {
        printf("%d from ranks 0-%u\n", sum, everyone->size() - 1);
        failed = 0;
    }
    stream->send(END, "");
    stream->flush();
    delete stream;
    delete network;
    return failed;
}

int main(int argc, char** argv)
{
    if (argc > 2 && strcmp(argv[1], "back-end") == 0)
        return back_end(argc, argv);
    if (argc == 2)
        return front_end(argv[1], argv[0]);
    fprintf(stderr, "add: usage: add TOPOLOGY-FILE\n");
    return 1;
}
