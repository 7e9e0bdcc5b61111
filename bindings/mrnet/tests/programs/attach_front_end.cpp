/*
 * Attach mode: the network starts no back-ends; the tool starts them itself, at the leaves, under
 * ranks that it chooses.
 *
 *     attach_front_end TOPOLOGY BACK-END
 */
#include <sys/wait.h>

#include <atomic>

#include "answer.hpp"

using namespace MRN;

namespace {

const unsigned int PER_LEAF = 2;
const Rank FIRST_RANK = 1000;

std::atomic<unsigned int> came(0);

void count(Event* event, void*)
{
    if (event->get_Class() == Event::TOPOLOGY_EVENT && event->get_Type() == TopologyEvent::TOPOL_ADD_BE)
        came++;
}

pid_t start(const char* program, NetworkTopology::Node* parent, Rank rank)
{
    std::string host = parent->get_HostName(), port = std::to_string(parent->get_Port()),
                above = std::to_string(parent->get_Rank()), own = std::to_string(rank);
    pid_t child = fork();
    if (child == 0) {
        execl(program, program, host.c_str(), port.c_str(), above.c_str(), host.c_str(),
              own.c_str(), static_cast<char*>(NULL));
        _exit(127);
    }
    return child;
}

}  // namespace

int main(int argc, char* argv[])
{
    DEMAND(argc == 3);
    Network* net = Network::CreateNetworkFE(argv[1], NULL, NULL);
    if (net->has_Error())
        net->print_error("attach_front_end");
    DEMAND(!net->has_Error());
    DEMAND(net->register_EventCallback(Event::TOPOLOGY_EVENT, TopologyEvent::TOPOL_ADD_BE, count, NULL));
    std::vector<NetworkTopology::Node*> leaves;
    std::vector<pid_t> children;
    NetworkTopology* topology = net->get_NetworkTopology();
    topology->get_Leaves(leaves);
    for (NetworkTopology::Node* leaf : leaves)
        for (unsigned int at = 0; at < PER_LEAF; at++)
            children.push_back(start(argv[2], leaf, FIRST_RANK + Rank(children.size())));
    for (int waited = 0; came < children.size() && waited < 3000; waited++)
        usleep(10000);
    DEMAND(came == children.size());
    DEMAND(topology->num_BackEndNodes() == children.size());
    Communicator* everyone = net->get_BroadcastCommunicator();
    DEMAND(everyone->size() == children.size());
    Stream* stream = net->new_Stream(everyone, TFILTER_SUM);
    PacketPtr packet;
    int sum = 0;
    DEMAND(stream->send(TAG_SUM, "%d", 3) == 0 && stream->recv(NULL, packet) == 1);
    DEMAND(packet->unpack("%d", &sum) == 0 && sum == 3 * int(children.size()));
    Stream* plain = net->new_Stream(everyone, TFILTER_NULL, SFILTER_DONTWAIT);
    std::set<Rank> sources;
    DEMAND(plain->send(TAG_RANK, "") == 0);
    for (size_t at = 0; at < children.size(); at++) {
        Rank rank = 0;
        DEMAND(plain->recv(NULL, packet) == 1 && packet->unpack("%ud", &rank) == 0);
        DEMAND(rank == packet->get_SourceRank());
        sources.insert(rank);
    }
    DEMAND(sources.size() == children.size() && *sources.begin() == FIRST_RANK);
    DEMAND(net->send(FIRST_RANK, TAG_EXIT, "") == 0);
    DEMAND(plain->send(TAG_EXIT, "") == 0 && plain->flush() == 0);
    delete stream;
    delete plain;
    delete net;
    for (pid_t child : children) {
        int status = 0;
        DEMAND(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    printf("%zu attached\n", children.size());
    return 0;
}
