/*
 * Round trips of a small wave: a number down, the sum of all back-ends up. One line of JSON.
 *
 *     round_trip TOPOLOGY BACK-END [ROUNDS]
 */
#include <algorithm>
#include <chrono>

#include "answer.hpp"

using namespace MRN;

int main(int argc, char* argv[])
{
    DEMAND(argc == 3 || argc == 4);
    const int rounds = argc == 4 ? atoi(argv[3]) : 1000, warm_up = rounds / 10 + 1;
    Network* net = Network::CreateNetworkFE(argv[1], argv[2], NULL);
    if (net->has_Error())
        net->print_error("round_trip");
    DEMAND(!net->has_Error());
    Stream* stream = net->new_Stream(net->get_BroadcastCommunicator(), TFILTER_SUM);
    std::vector<double> times;
    for (int round = -warm_up; round < rounds; round++) {
        auto before = std::chrono::steady_clock::now();
        PacketPtr packet;
        int tag, sum = 0;
        DEMAND(stream->send(TAG_SUM, "%d", round) == 0 && stream->flush() == 0);
        DEMAND(stream->recv(&tag, packet) == 1 && packet->unpack("%d", &sum) == 0);
        DEMAND(sum == round * int(stream->size()));
        std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - before;
        if (round >= 0)
            times.push_back(time.count());
    }
    std::sort(times.begin(), times.end());
    double sum = 0;
    for (double time : times)
        sum += time;
    printf("{\"layer\": \"mrnet\", \"back_ends\": %u, \"rounds\": %d, \"mean_us\": %.2f, "
           "\"median_us\": %.2f, \"p99_us\": %.2f}\n",
           stream->size(), rounds, sum / double(times.size()), times[times.size() / 2],
           times[times.size() * 99 / 100]);
    stream->send(TAG_EXIT, "");
    stream->flush();
    delete stream;
    delete net;
    return 0;
}
