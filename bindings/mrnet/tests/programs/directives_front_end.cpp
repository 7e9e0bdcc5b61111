/*
 * Every directive in both directions, and a sum.
 *
 *     directives_front_end TOPOLOGY BACK-END
 */
#include "answer.hpp"

using namespace MRN;

int main(int argc, char* argv[])
{
    DEMAND(argc == 3);
    const char* arguments[] = {"one", "two words", NULL};
    Network* net = Network::CreateNetworkFE(argv[1], argv[2], arguments);
    if (net->has_Error()) {
        net->print_error("directives_front_end");
        return 1;
    }
    Communicator* everyone = net->get_BroadcastCommunicator();
    Stream* stream = net->new_Stream(everyone, TFILTER_NULL, SFILTER_WAITFORALL, TFILTER_NULL);
    DEMAND(stream != NULL && stream->size() == everyone->size());
    for (int number = 0; number < DIRECTIVES; number++) {
        DEMAND(send_directive(stream, number) == 0);
        DEMAND(stream->flush() == 0);
        std::set<Rank> sources;
        for (unsigned int at = 0; at < everyone->size(); at++) {
            int tag = 0;
            PacketPtr packet;
            DEMAND(stream->recv(&tag, packet) == 1);
            if (tag != TAG_DIRECTIVE + number || !check_directive(packet, number)) {
                fprintf(stderr, "directive %d: tag %d, format %s\n", number, tag,
                        packet->get_FormatString());
                return 1;
            }
            sources.insert(packet->get_SourceRank());
        }
        DEMAND(sources == stream->get_EndPoints());
    }
    Stream* sum = net->new_Stream(everyone, TFILTER_SUM, SFILTER_WAITFORALL);
    int tag, total = 0;
    PacketPtr packet;
    DEMAND(sum->send(TAG_SUM, "%d", 7) == 0 && sum->flush() == 0);
    DEMAND(sum->recv(&tag, packet) == 1 && packet->unpack("%d", &total) == 0);
    DEMAND(total == 7 * int(everyone->size()));
    DEMAND(stream->send(TAG_EXIT, "") == 0 && stream->flush() == 0);
    delete sum;
    delete stream;
    delete net;
    printf("%d directives\n", DIRECTIVES);
    return 0;
}
