/*
 * A back-end of style_front_end, in C.
 */
#include "mrnet_lightweight/MRNet.h"
#include "style.h"

static int answer(Stream_t *stream, int tag, Packet_t *packet)
{
    int number = 0;
    if (Packet_unpack(packet, "%d", &number) != 0)
        return -1;
    if (tag == STYLE_ECHO)
        return Stream_send(stream, tag, "%d", number);
    for (int wave = 0; wave < number; wave++) {
        if (Stream_send(stream, tag, "%d", wave) != 0)
            return -1;
        if (tag == STYLE_FLUSHED && Stream_flush(stream) != 0)
            return -1;
    }
    return 0;
}

int main(int argc, char *argv[])
{
    Network_t *net = Network_CreateNetworkBE(argc, argv);
    Packet_t *packet = calloc(1, sizeof *packet);
    int is_good = net != NULL && packet != NULL;
    while (is_good) {
        Stream_t *stream;
        int tag;
        if (Network_recv(net, &tag, packet, &stream) != 1 || tag == STYLE_EXIT)
            break;
        is_good = answer(stream, tag, packet) == 0 && Stream_flush(stream) == 0;
    }
    if (net == NULL || packet == NULL)
        return 1;
    Network_waitfor_ShutDown(net);
    delete_Packet_t(packet);
    delete_Network_t(net);
    return is_good ? 0 : 1;
}
