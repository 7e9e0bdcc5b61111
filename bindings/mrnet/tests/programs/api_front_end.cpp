/*
 * What a front-end can ask of a network over four back-ends in two levels, function by function.
 *
 *     api_front_end TOPOLOGY BACK-END SCRATCH-FOLDER
 */
#include <poll.h>

#include <atomic>
#include <cmath>

#include "answer.hpp"

using namespace MRN;

namespace {

bool is_readable(int descriptor, int milliseconds)
{
    pollfd watched = {descriptor, POLLIN, 0};
    return poll(&watched, 1, milliseconds) == 1;
}

int variadic_send(Stream* stream, int tag, const char* format, ...)
{
    va_list values;
    va_start(values, format);
    int result = stream->send(format, values, tag);
    va_end(values);
    return result;
}

int variadic_network_send(Network* net, Rank rank, int tag, const char* format, ...)
{
    va_list values;
    va_start(values, format);
    int result = net->send(rank, format, values, tag);
    va_end(values);
    return result;
}

int variadic_parameters(Stream* stream, FilterType type, const char* format, ...)
{
    va_list values;
    va_start(values, format);
    int result = stream->set_FilterParameters(format, values, type);
    va_end(values);
    return result;
}

int identity(Network* net, const std::string& folder)
{
    DEMAND(net->is_LocalNodeFrontEnd() && net->is_LocalNodeParent() && !net->is_LocalNodeChild());
    DEMAND(!net->is_LocalNodeBackEnd() && !net->is_LocalNodeInternal() && !net->is_ShutDown());
    DEMAND(net->get_LocalRank() == 4 && !net->get_LocalHostName().empty());
    DEMAND(net->get_LocalPort() != UnknownPort && !net->has_Error());
    NetworkTopology* topology = net->get_NetworkTopology();
    DEMAND(topology->get_NumNodes() == 7 && topology->num_BackEndNodes() == 4);
    DEMAND(topology->num_InternalNodes() == 2 && topology->get_Root()->get_Rank() == 4);
    NetworkTopology::Node* node = topology->find_Node(5);
    DEMAND(node != NULL && node->get_Rank() == 5 && node->get_Parent() == 4);
    DEMAND(node->get_NumChildren() == 2 && node->get_Children().size() == 2 && !node->failed());
    DEMAND(node->find_SubTreeHeight() == 1 && node->get_HostName() == "localhost");
    DEMAND(node->get_Port() != UnknownPort && topology->find_Node(77) == NULL);
    unsigned int nodes, depth, least, most;
    double average, deviation;
    topology->get_TreeStatistics(nodes, depth, least, most, average, deviation);
    DEMAND(nodes == 7 && depth == 2 && least == 2 && most == 2);
    DEMAND(std::fabs(average - 2) < 1e-9 && std::fabs(deviation) < 1e-9);
    std::vector<NetworkTopology::Node*> leaves;
    std::set<NetworkTopology::Node*> parents, orphans, back_ends;
    topology->get_Leaves(leaves);
    topology->get_ParentNodes(parents);
    topology->get_OrphanNodes(orphans);
    topology->get_BackEndNodes(back_ends);
    DEMAND(leaves.size() == 4 && parents.size() == 3 && orphans.empty() && back_ends.size() == 4);
    topology->print_TopologyFile((folder + "/printed.top").c_str());
    topology->print_DOTGraph((folder + "/printed.dot").c_str());
    FILE* printed = fopen((folder + "/printed.txt").c_str(), "w");
    DEMAND(printed != NULL);
    topology->print(printed);
    fclose(printed);
    TopologyLocalInfo info(topology, node);
    DEMAND(info.get_Rank() == 5 && info.get_NumChildren() == 2 && info.get_NumSiblings() == 1);
    DEMAND(info.get_NumDescendants() == 2 && info.get_NumLeafDescendants() == 2);
    DEMAND(info.get_RootDistance() == 1 && info.get_MaxLeafDistance() == 1);
    DEMAND(info.get_Topology() == topology && info.get_Network() == net);
    DEMAND(!net->node_Failed(5) && !topology->node_Failed(0) && !topology->node_Failed(77));
    return 0;
}

Rank topology_parent(Network* net, Rank rank)
{
    return net->get_NetworkTopology()->find_Node(rank)->get_Parent();
}

int communicators(Network* net)
{
    Communicator* everyone = net->get_BroadcastCommunicator();
    DEMAND(everyone->size() == 4 && everyone->get_EndPoints().size() == 4);
    CommunicationNode* node = net->get_EndPoint(2);
    DEMAND(node != NULL && node->get_Rank() == 2 && node->get_HostName() == "localhost");
    DEMAND(node->get_Port() != UnknownPort && net->get_EndPoint(99) == NULL);
    DEMAND(CommunicationNode::ltnode()(net->get_EndPoint(1), node));
    Communicator* some = net->new_Communicator();
    DEMAND(some->size() == 0 && some->add_EndPoint(1) && some->add_EndPoint(node));
    DEMAND(!some->add_EndPoint(99) && some->size() == 2);
    DEMAND(net->new_Communicator(*some)->size() == 2);
    DEMAND(net->new_Communicator(std::set<Rank>{0, 3})->size() == 2);
    std::set<CommunicationNode*> nodes = {node};
    Communicator* one = net->new_Communicator(nodes);
    DEMAND(one->size() == 1);
    Stream* stream = net->new_Stream(one, TFILTER_NULL);
    std::set<Rank> children;
    stream->get_ChildRanks(children);
    DEMAND(children.size() == 1 && *children.begin() == topology_parent(net, 2));
    PacketPtr packet;
    Rank rank = 0;
    DEMAND(stream->send(TAG_RANK, "") == 0 && stream->recv(NULL, packet) == 1);
    DEMAND(packet->unpack("%ud", &rank) == 0 && rank == 2);
    delete stream;
    return 0;
}

/* One wave of numbers through a filter. */
int wave(Network* net, Stream* stream, int number, PacketPtr& packet)
{
    int tag;
    DEMAND(stream != NULL && stream->send(TAG_SUM, "%d", number) == 0 && stream->flush() == 0);
    Stream* from = NULL;
    DEMAND(net->recv(&tag, packet, &from) == 1 && from == stream && tag == TAG_SUM);
    return 0;
}

int filters(Network* net)
{
    Communicator* everyone = net->get_BroadcastCommunicator();
    struct {
        FilterId id;
        int wanted;
    } cases[] = {{TFILTER_SUM, 36}, {TFILTER_AVG, 9}, {TFILTER_MAX, 9}, {TFILTER_MIN, 9}};
    for (auto& each : cases) {
        Stream* stream = net->new_Stream(everyone, each.id, SFILTER_WAITFORALL, TFILTER_NULL);
        PacketPtr packet;
        int value = 0;
        DEMAND(wave(net, stream, 9, packet) == 0);
        DEMAND(packet->unpack("%d", &value) == 0 && value == each.wanted);
        delete stream;
    }
    Stream* stream = net->new_Stream(everyone, TFILTER_ARRAY_CONCAT);
    PacketPtr packet;
    int* ranks = NULL;
    uint32_t count = 0;
    DEMAND(stream->send(TAG_ARRAY, "%d", 2) == 0 && stream->recv(NULL, packet) == 1);
    DEMAND(std::string(packet->get_FormatString()) == "%ad");
    DEMAND(packet->unpack("%ad", &ranks, &count) == 0 && count == 8 && ranks[0] == 0 && ranks[7] == 3);
    free(ranks);
    delete stream;
    stream = net->new_Stream(everyone, TFILTER_INT_EQ_CLASS);
    uint32_t *values = NULL, *sizes = NULL, *members = NULL, classes = 0, more = 0, all = 0;
    DEMAND(stream->send(TAG_CLASS, "%ud", 2) == 0 && stream->recv(NULL, packet) == 1);
    DEMAND(packet->unpack("%aud %aud %aud", &values, &classes, &sizes, &more, &members, &all) == 0);
    DEMAND(classes == 2 && more == 2 && all == 4 && values[0] == 0 && sizes[0] == 2);
    DEMAND(members[0] == 0 && members[1] == 2 && members[2] == 1 && members[3] == 3);
    free(values), free(sizes), free(members);
    delete stream;
    /* Rank 5 passes what rank 6 adds up. */
    stream = net->new_Stream(everyone, "1 => 6 ; 0 => * ;", "51 => * ;", "0 => * ;");
    DEMAND(stream != NULL && stream->send(TAG_SUM, "%d", 5) == 0);
    int value = 0, total = 0;
    for (int at = 0; at < 3; at++) {
        DEMAND(stream->recv(NULL, packet) == 1 && packet->unpack("%d", &value) == 0);
        total += value;
    }
    DEMAND(total == 20);
    delete stream;
    for (FilterId id : {TFILTER_TOPO_UPDATE, TFILTER_TOPO_UPDATE_DOWNSTREAM, TFILTER_PERFDATA}) {
        stream = net->new_Stream(everyone, id);
        DEMAND(stream != NULL);
        delete stream;
    }
    return 0;
}

int sending(Network* net, Stream* stream)
{
    PacketPtr packet;
    int number = 4, tag = 0;
    const void* values[] = {&number};
    DEMAND(!stream->is_Closed() && !stream->is_ShutDown() && stream->get_Id() >= USER_STRM_BASE_ID);
    DEMAND(net->get_Stream(stream->get_Id()) == stream && net->get_Stream(1u << 31) == NULL);
    DEMAND(variadic_send(stream, TAG_SUM, "%d", 1) == 0 && stream->recv(&tag, packet) == 1);
    DEMAND(stream->send(TAG_SUM, values, "%d") == 0 && stream->recv(&tag, packet) == 1);
    DEMAND(packet->unpack("%d", &number) == 0 && number == 16 && tag == TAG_SUM);
    DEMAND(packet->get_StreamId() == stream->get_Id() && packet->get_InletNodeRank() != UnknownRank);
    PacketPtr made(new Packet(stream->get_Id(), TAG_SUM, "%d", 2));
    DEMAND(stream->send(made) == 0 && net->flush() == 0 && stream->recv(&tag, packet) == 1);
    DEMAND(stream->recv(&tag, packet, false) == 0 && net->recv(&tag, packet, NULL, false) == 0);
    PacketPtr some(new Packet(stream->get_Id(), TAG_TWICE, "%d", 2));
    Stream* plain = net->new_Stream(net->get_BroadcastCommunicator(), TFILTER_NULL, SFILTER_DONTWAIT);
    Rank to[] = {1, 3};
    DEMAND(some->set_Destinations(to, 2) && plain->send(some) == 0);
    for (int at = 0; at < 4; at++) {
        DEMAND(plain->recv(&tag, packet) == 1);
        DEMAND(packet->get_SourceRank() == 1 || packet->get_SourceRank() == 3);
    }
    delete plain;
    return 0;
}

int direct(Network* net)
{
    PacketPtr packet;
    Stream* from = NULL;
    int number = 3, tag = 0;
    const void* values[] = {&number};
    PacketPtr made(new Packet(0, TAG_SUM, "%d", 3));
    DEMAND(net->send(2, TAG_SUM, "%d", 3) == 0);
    DEMAND(variadic_network_send(net, 2, TAG_SUM, "%d", 3) == 0);
    DEMAND(net->send(2, TAG_SUM, values, "%d") == 0 && net->send(2, made) == 0 && net->flush() == 0);
    for (int at = 0; at < 4; at++) {
        DEMAND(net->recv(&tag, packet, &from) == 1 && packet->get_SourceRank() == 2);
        DEMAND(packet->unpack("%d", &number) == 0 && number == 3 && from->get_Id() < CTL_STRM_ID);
    }
    DEMAND(net->send(99, TAG_SUM, "%d", 3) == -1);
    for (int own : {INT32_MIN, -1, 0, FirstApplicationTag - 1, INT32_MAX})
        DEMAND(net->send(2, own, "%d", 3) == -1 && from->send(own, "%d", 3) == -1);
    return 0;
}

int descriptors(Network* net, Stream* stream)
{
    PacketPtr packet;
    int descriptor = stream->get_DataNotificationFd();
    DEMAND(descriptor >= 0 && !is_readable(descriptor, 0));
    int of_events = net->get_EventNotificationFd(Event::DATA_EVENT);
    DEMAND(stream->send(TAG_SUM, "%d", 1) == 0 && stream->flush() == 0);
    DEMAND(is_readable(descriptor, 20000) && is_readable(of_events, 20000));
    stream->clear_DataNotificationFd();
    net->clear_EventNotificationFd(Event::DATA_EVENT);
    DEMAND(!is_readable(descriptor, 0) && stream->has_Data());
    DEMAND(stream->recv(NULL, packet) == 1 && !stream->has_Data());
    stream->close_DataNotificationFd();
    net->close_EventNotificationFd(Event::DATA_EVENT);
    return 0;
}

std::atomic<int> told(0);

void tell(Event* event, void* data)
{
    DataEvent::DataEventData* of = static_cast<DataEvent::DataEventData*>(event->get_Data());
    if (event->get_Class() == Event::DATA_EVENT && event->get_Type() == DataEvent::DATA_AVAILABLE &&
        of->get_Stream() == data)
        told++;
}

int events(Network* net, Stream* stream)
{
    PacketPtr packet;
    net->clear_Events();
    DEMAND(net->num_EventsPending() == 0 && net->next_Event() == NULL);
    DEMAND(net->register_EventCallback(Event::DATA_EVENT, Event::EVENT_TYPE_ALL, tell, stream));
    DEMAND(stream->send(TAG_SUM, "%d", 1) == 0 && stream->recv(NULL, packet) == 1);
    for (int waited = 0; told == 0 && waited < 2000; waited++)
        usleep(10000);
    DEMAND(told == 1 && net->num_EventsPending() == 1);
    Event* event = net->next_Event();
    DEMAND(event != NULL && event->get_Class() == Event::DATA_EVENT);
    delete static_cast<DataEvent::DataEventData*>(event->get_Data());
    delete event;
    DEMAND(net->remove_EventCallback(tell, Event::DATA_EVENT, Event::EVENT_TYPE_ALL));
    DEMAND(!net->remove_EventCallbacks(Event::EVENT_CLASS_ALL, Event::EVENT_TYPE_ALL));
    return 0;
}

int performance(Network* net, Stream* stream)
{
    rank_perfdata_map by_rank;
    std::map<int, rank_perfdata_map> by_stream;
    const perfdata_context_t sent = PERFDATA_CTX_SEND;
    DEMAND(!stream->collect_PerformanceData(by_rank, PERFDATA_MET_NUM_PKTS, sent));
    DEMAND(stream->enable_PerformanceData(PERFDATA_MET_NUM_PKTS, sent));
    DEMAND(!stream->enable_PerformanceData(PERFDATA_MAX_MET, sent));
    DEMAND(stream->collect_PerformanceData(by_rank, PERFDATA_MET_NUM_PKTS, sent));
    DEMAND(by_rank.size() == 7 && by_rank[4].size() == 1 && by_rank[4][0].u > 0 && by_rank[0][0].u > 0);
    stream->print_PerformanceData(PERFDATA_MET_NUM_PKTS, sent);
    DEMAND(stream->disable_PerformanceData(PERFDATA_MET_NUM_PKTS, sent));
    for (int metric = 0; metric < PERFDATA_MAX_MET; metric++) {
        perfdata_metric_t each = perfdata_metric_t(metric);
        DEMAND(net->enable_PerformanceData(each, PERFDATA_CTX_NONE));
        DEMAND(net->collect_PerformanceData(by_stream, each, PERFDATA_CTX_NONE, TFILTER_SUM));
        DEMAND(by_stream[int(stream->get_Id())].size() == 1);
        net->print_PerformanceData(each, PERFDATA_CTX_NONE);
        DEMAND(net->disable_PerformanceData(each, PERFDATA_CTX_NONE));
        by_stream.clear();
    }
    return 0;
}

int waves(Network* net)
{
    Communicator* everyone = net->get_BroadcastCommunicator();
    PacketPtr packet;
    int value = 0;
    Stream* stream = net->new_Stream(everyone, TFILTER_SUM, SFILTER_TIMEOUT);
    DEMAND(stream->set_FilterParameters(FILTER_UPSTREAM_SYNC, "%ud", 100) == 0);
    DEMAND(variadic_parameters(stream, FILTER_UPSTREAM_TRANS, "%d", 1) == 0);
    DEMAND(stream->set_FilterParameters(FILTER_UPSTREAM_SYNC, "%q", 100) == -1);
    DEMAND(stream->send(TAG_SLOW, "%d", 1500) == 0 && stream->recv(NULL, packet) == 1);
    DEMAND(packet->unpack("%d", &value) == 0 && value < 4);
    delete stream;
    stream = net->new_Stream(everyone, TFILTER_NULL, SFILTER_DONTWAIT);
    DEMAND(stream->send(TAG_INSPECT, "") == 0);
    for (int at = 0; at < 4; at++)
        DEMAND(stream->recv(NULL, packet) == 1 && packet->unpack("%d", &value) == 0 && value == 1);
    delete stream;
    return 0;
}

/* Packets without a format are empty ones, both ways; empty assignments are the filters of every stream. */
int empty(Network* net)
{
    Communicator* everyone = net->get_BroadcastCommunicator();
    Stream* stream = net->new_Stream(everyone, "", "", "");
    PacketPtr packet;
    DEMAND(stream != NULL && stream->send(TAG_EMPTY, NULL) == 0);
    for (int at = 0; at < 12; at++) {
        DEMAND(stream->recv(NULL, packet) == 1 && packet->get_FormatString()[0] == '\0');
        DEMAND(packet->unpack("") == 0 && packet->unpack(NULL) == 0 && packet->unpack("%d", &at) == -1);
    }
    delete stream;
    stream = net->new_Stream(everyone, "1 => * ;", "", " ");
    int sum = 0;
    DEMAND(stream != NULL && stream->send(TAG_SUM, "%d", 5) == 0 && stream->recv(NULL, packet) == 1);
    DEMAND(packet->unpack("%d", &sum) == 0 && sum == 20);
    delete stream;
    return 0;
}

}  // namespace

int main(int argc, char* argv[])
{
    DEMAND(argc == 4);
    std::map<std::string, std::string> attributes = {{"MRNET_STARTUP_TIMEOUT", "60"},
                                                     {"MRNET_DEBUG_LEVEL", "0"}};
    Network* net = Network::CreateNetworkFE(argv[1], argv[2], NULL, &attributes);
    if (net->has_Error())
        net->print_error("api_front_end");
    DEMAND(!net->has_Error() && identity(net, argv[3]) == 0 && communicators(net) == 0);
    DEMAND(net->set_FailureRecovery(true) && net->set_FailureRecovery(false) && net->set_FailureRecovery(true));
    DEMAND(filters(net) == 0 && empty(net) == 0);
    Stream* stream = net->new_Stream(net->get_BroadcastCommunicator(), TFILTER_SUM);
    DEMAND(stream != NULL && sending(net, stream) == 0 && direct(net) == 0);
    DEMAND(descriptors(net, stream) == 0 && events(net, stream) == 0);
    DEMAND(performance(net, stream) == 0 && waves(net) == 0);
    DEMAND(stream->send(TAG_EXIT, "") == 0 && stream->flush() == 0);
    delete stream;
    delete net;
    printf("all asked\n");
    return 0;
}
