/*
 * A communication process is killed: its back-ends find another parent, the topology and the events
 * say so, and sums are whole again.
 *
 *     recovery TOPOLOGY BACK-END
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

int main(int argc, char* argv[])
{
    DEMAND(argc == 3);
    Network* net = Network::CreateNetworkFE(argv[1], argv[2], NULL);
    DEMAND(!net->has_Error());
    DEMAND(net->register_EventCallback(Event::TOPOLOGY_EVENT, Event::EVENT_TYPE_ALL, note, NULL));
    Stream* stream = net->new_Stream(net->get_BroadcastCommunicator(), TFILTER_SUM);
    pid_t victim = communication_process();
    DEMAND(victim > 0 && kill(victim, SIGKILL) == 0);
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
    DEMAND(net->remove_EventCallbacks(Event::TOPOLOGY_EVENT, Event::EVENT_TYPE_ALL));
    delete net;
    printf("recovered\n");
    return 0;
}
