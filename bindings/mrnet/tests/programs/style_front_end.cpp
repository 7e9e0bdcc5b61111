/*
 * MRNet's own measurements: start-up, latency of a broadcast and a reduction of one integer, and
 * throughput of reductions.
 *
 *     style_front_end TOPOLOGY-TEXT BACK-END [ARGUMENT...]
 *
 * The first line of output is the time until the network stands. Then each line of input has one of
 * output: "latency N" the times of N round trips, "flushed N" and "queued N" the time from a request
 * for N waves until the last sum has come. All times are in nanoseconds.
 */
#include <chrono>
#include <cstring>

#include "answer.hpp"
#include "style.h"

using namespace MRN;

namespace {

typedef std::chrono::steady_clock Clock;

long long since(Clock::time_point begin)
{
    return std::chrono::nanoseconds(Clock::now() - begin).count();
}

int next_sum(Stream* stream, int expected)
{
    PacketPtr packet;
    int tag, sum = 0;
    DEMAND(stream->recv(&tag, packet) == 1 && packet->unpack("%d", &sum) == 0);
    DEMAND(sum == expected * int(stream->size()));
    return 0;
}

int latency(Stream* stream, int times)
{
    for (int number = 0; number < times; number++) {
        Clock::time_point begin = Clock::now();
        DEMAND(stream->send(STYLE_ECHO, "%d", number) == 0 && stream->flush() == 0);
        DEMAND(next_sum(stream, number) == 0);
        printf("%lld ", since(begin));
    }
    return 0;
}

int throughput(Stream* stream, int tag, int waves)
{
    Clock::time_point begin = Clock::now();
    DEMAND(stream->send(tag, "%d", waves) == 0 && stream->flush() == 0);
    for (int number = 0; number < waves; number++)
        DEMAND(next_sum(stream, number) == 0);
    printf("%lld", since(begin));
    return 0;
}

}  // namespace

int main(int argc, char* argv[])
{
    DEMAND(argc >= 3);
    const char** arguments = const_cast<const char**>(argv + 3);
    Clock::time_point begin = Clock::now();
    Network* net = Network::CreateNetworkFE(argv[1], argv[2], arguments, NULL, true, true);
    if (net->has_Error())
        net->print_error("style_front_end");
    DEMAND(!net->has_Error());
    printf("%lld\n", since(begin));
    fflush(stdout);
    Stream* stream = net->new_Stream(net->get_BroadcastCommunicator(), TFILTER_SUM);
    char what[16];
    for (int count; scanf("%15s %d", what, &count) == 2;) {
        if (strcmp(what, "latency") == 0)
            DEMAND(latency(stream, count) == 0);
        else
            DEMAND(throughput(stream, strcmp(what, "flushed") == 0 ? STYLE_FLUSHED : STYLE_QUEUED, count) == 0);
        printf("\n");
        fflush(stdout);
    }
    stream->send(STYLE_EXIT, "");
    stream->flush();
    delete stream;
    delete net;
    return 0;
}
