/*
 * Several networks in one process, each used by several threads at once.
 *
 *     networks TOPOLOGY BACK-END
 */
#include <atomic>
#include <thread>

#include "answer.hpp"

using namespace MRN;

namespace {

const int NETWORKS = 3, STREAMS = 3, WAVES = 20;

std::atomic<int> bad(0);

int ask(Network* net, int first)
{
    Stream* stream = net->new_Stream(net->get_BroadcastCommunicator(), TFILTER_SUM);
    DEMAND(stream != NULL);
    for (int wave = first; wave < first + WAVES; wave++) {
        PacketPtr packet;
        int sum = 0;
        DEMAND(stream->send(TAG_SUM, "%d", wave) == 0 && stream->flush() == 0);
        DEMAND(stream->recv(NULL, packet) == 1 && packet->unpack("%d", &sum) == 0);
        DEMAND(sum == wave * int(stream->size()));
    }
    delete stream;
    return 0;
}

}  // namespace

int main(int argc, char* argv[])
{
    DEMAND(argc == 3);
    std::vector<Network*> networks;
    std::vector<std::thread> threads;
    for (int at = 0; at < NETWORKS; at++) {
        networks.push_back(Network::CreateNetworkFE(argv[1], argv[2], NULL));
        DEMAND(!networks.back()->has_Error());
    }
    for (Network* net : networks)
        for (int at = 0; at < STREAMS; at++)
            threads.emplace_back([net, at] { bad += ask(net, 100 * at); });
    for (std::thread& thread : threads)
        thread.join();
    DEMAND(bad == 0);
    for (Network* net : networks)
        delete net;
    printf("%d networks\n", NETWORKS);
    return 0;
}
