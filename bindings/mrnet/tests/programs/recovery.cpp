/*
 * A communication process is killed: its back-ends find another parent, the topology and the events
 * say so, and sums are whole again.
 *
 *     recovery TOPOLOGY BACK-END [attribute|call]
 *
 * With failure recovery switched off, by its attribute or by a call, what was below the process is gone.
 */
#include <dirent.h>
#include <signal.h>

#include <atomic>
#include <cstring>
#include <fstream>

#include "answer.hpp"

using namespace MRN;

namespace {

std::atomic<int> removed(0), moved(0);

void note(Event* event, void*)
{
    TopologyEvent::TopolEventData* data =
        static_cast<TopologyEvent::TopolEventData*>(event->get_Data());
    if (event->get_Type() == TopologyEvent::TOPOL_REMOVE_NODE && data->get_Rank() >= 4)
        removed++;
    if (event->get_Type() == TopologyEvent::TOPOL_CHANGE_PARENT)
        moved++;
}

/* A communication process that this process has started. */
pid_t communication_process()
{
    DIR* all = opendir("/proc");
    pid_t found = 0;
    for (dirent* entry; all != NULL && (entry = readdir(all)) != NULL;) {
        std::ifstream stat("/proc/" + std::string(entry->d_name) + "/stat");
        pid_t process = 0, parent = 0;
        std::string name, state;
        if (stat >> process >> name >> state >> parent && parent == getpid() &&
            name.find("mrnet_commnode") != std::string::npos)
            found = process;
    }
    if (all != NULL)
        closedir(all);
    return found;
}

}  // namespace

/* What is left of a tree that does not repair itself. */
int without_recovery(Network* net, Stream* stream)
{
    for (int waited = 0; waited < 3000; waited++) {
        if (net->get_NetworkTopology()->num_BackEndNodes() == 2 && removed == 1)
            break;
        usleep(10000);
    }
    DEMAND(net->get_NetworkTopology()->num_BackEndNodes() == 2);
    PacketPtr packet;
    int sum = 0;
    DEMAND(stream->send(TAG_SUM, "%d", 3) == 0 && stream->recv(NULL, packet) == 1);
    DEMAND(packet->unpack("%d", &sum) == 0 && sum == 6);
    DEMAND(removed == 1 && moved == 0 && net->get_NetworkTopology()->num_InternalNodes() == 1);
    DEMAND(net->node_Failed(0) || net->node_Failed(2));
    return 0;
}

int with_recovery(Network* net, Stream* stream)
{
    int sum = 0;
    for (int wave = 0; wave < 5; wave++) {
        PacketPtr packet;
        DEMAND(stream->send(TAG_SUM, "%d", 2) == 0 && stream->recv(NULL, packet) == 1);
        DEMAND(packet->unpack("%d", &sum) == 0);
    }
    DEMAND(sum == 8);
    for (int waited = 0; (removed == 0 || moved < 2) && waited < 3000; waited++)
        usleep(10000);
    DEMAND(removed == 1 && moved == 2 && (net->node_Failed(5) || net->node_Failed(6)));
    DEMAND(net->get_NetworkTopology()->num_InternalNodes() == 1);
    DEMAND(net->get_NetworkTopology()->num_BackEndNodes() == 4);
    return 0;
}

int main(int argc, char* argv[])
{
    DEMAND(argc == 3 || argc == 4);
    std::string off = argc == 4 ? argv[3] : "";
    std::map<std::string, std::string> attributes;
    if (off == "attribute")
        attributes["MRNET_FAILURE_RECOVERY"] = "0";
    Network* net = Network::CreateNetworkFE(argv[1], argv[2], NULL, &attributes);
    DEMAND(!net->has_Error());
    DEMAND(off != "call" || net->set_FailureRecovery(false));
    DEMAND(off != "attribute" || (net->set_FailureRecovery(false) && !net->set_FailureRecovery(true)));
    DEMAND(net->register_EventCallback(Event::TOPOLOGY_EVENT, Event::EVENT_TYPE_ALL, note, NULL));
    Stream* stream = net->new_Stream(net->get_BroadcastCommunicator(), TFILTER_SUM);
    PacketPtr packet;
    /* The stream, and what was switched, has come everywhere. */
    DEMAND(stream->send(TAG_SUM, "%d", 1) == 0 && stream->recv(NULL, packet) == 1);
    pid_t victim = communication_process();
    DEMAND(victim > 0 && kill(victim, SIGKILL) == 0);
    DEMAND((off.empty() ? with_recovery(net, stream) : without_recovery(net, stream)) == 0);
    DEMAND(net->remove_EventCallbacks(Event::TOPOLOGY_EVENT, Event::EVENT_TYPE_ALL));
    delete net;
    printf("recovered\n");
    return 0;
}
