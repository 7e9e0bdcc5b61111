/*
 * Networks, as tools see them: how they begin, and what they pass on to their engine.
 */
#include "mrnet/Network.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "back_end.hpp"
#include "front_end.hpp"
#include "internal.hpp"
#include "performance.hpp"

namespace MRN {

Network::Network() : engine_(NULL) {}

Network::~Network()
{
    delete engine_;
}

Engine& Network::engine() const
{
    return *engine_;
}

Network* Network::CreateNetworkFE(const char* topology, const char* back_end_program,
                                  const char** back_end_arguments,
                                  const std::map<std::string, std::string>* attributes, bool,
                                  bool topology_is_buffer)
{
    Network* network = new Network;
    Settings settings(attributes);
    std::string level = settings.text("MRNET_DEBUG_LEVEL", "MRNET_OUTPUT_LEVEL");
    if (!level.empty())
        set_OutputLevel(atoi(level.c_str()));
    FrontEnd* front_end = new FrontEnd(*network, UnknownRank);
    network->engine_ = front_end;
    std::string text = topology == NULL ? "" : topology;
    if (!topology_is_buffer) {
        std::ifstream file(text);
        std::ostringstream all;
        all << file.rdbuf();
        if (!file) {
            network->error(ERR_TOPOLOGY_FORMAT, UnknownRank, "cannot read %s", text.c_str());
            front_end->ended = true;
            return network;
        }
        text = all.str();
    }
    if (!front_end->start(text, back_end_program, back_end_arguments, settings))
        front_end->ended = true;
    return network;
}

namespace {

/* The five arguments that a process of a tree is given. */
struct JoinArguments {
    Port parent_port;
    Rank parent, rank;
};

bool read_arguments(char* arguments[], JoinArguments& joining)
{
    char* end[3];
    joining.parent_port = Port(strtoul(arguments[1], &end[0], 10));
    joining.parent = Rank(strtoul(arguments[2], &end[1], 10));
    joining.rank = Rank(strtoul(arguments[4], &end[2], 10));
    for (int at = 0; at < 3; at++)
        if (*end[at] != '\0')
            return false;
    return true;
}

}  // namespace

Network* Network::CreateNetworkBE(int argc, char* argv[])
{
    JoinArguments joining;
    if (argc < 6 || argv == NULL)
        return NULL;
    Network* network = new Network;
    bool is_good = read_arguments(argv + argc - 5, joining);
    BackEnd* back_end = new BackEnd(*network, joining.rank, joining.parent, joining.parent_port);
    network->engine_ = back_end;
    if (is_good) {
        back_end->attach();
    } else {
        network->error(ERR_NETWORK_FAILURE, UnknownRank, "the last five arguments do not say where to join");
        back_end->ended = true;
    }
    return network;
}

Network* Network::CreateNetworkIN(int argc, char* argv[])
{
    JoinArguments joining;
    if (argc < 5 || argv == NULL || !read_arguments(argv, joining))
        return NULL;
    Network* network = new Network;
    network->engine_ = new Internal(*network, joining.rank);
    return network;
}

NetworkTopology* Network::get_NetworkTopology() const
{
    engine_->refresh();
    return &engine_->topology;
}

bool Network::is_ShutDown() const
{
    return engine_->has_ended();
}

void Network::waitfor_ShutDown() const
{
    engine_->wait_for_end();
}

void Network::print_error(const char* prefix)
{
    perror(prefix);
}

std::string Network::get_LocalHostName() const
{
    return engine_->host;
}

Port Network::get_LocalPort() const
{
    return engine_->port;
}

Rank Network::get_LocalRank() const
{
    return engine_->rank;
}

bool Network::is_LocalNodeChild() const
{
    return engine_->kind() != FE_NODE;
}

bool Network::is_LocalNodeParent() const
{
    return !is_LocalNodeBackEnd();
}

bool Network::is_LocalNodeInternal() const
{
    return engine_->kind() == CP_NODE;
}

bool Network::is_LocalNodeFrontEnd() const
{
    return engine_->kind() == FE_NODE;
}

bool Network::is_LocalNodeBackEnd() const
{
    return engine_->kind() == BE_NODE;
}

bool Network::node_Failed(Rank rank)
{
    engine_->refresh();
    return engine_->topology.node_Failed(rank);
}

Stream* Network::get_Stream(unsigned int id) const
{
    return engine_->stream(id);
}

int Network::recv(int* tag, PacketPtr& packet, Stream** stream, bool blocking)
{
    return engine_->recv(NULL, tag, packet, stream, blocking);
}

int Network::flush() const
{
    return engine_->flush();
}

int Network::send(Rank back_end, int tag, const char* format, ...)
{
    va_list values;
    va_start(values, format);
    int result = send(back_end, format, values, tag);
    va_end(values);
    return result;
}

int Network::send(Rank back_end, const char* format, va_list values, int tag)
{
    PacketPtr packet(new Packet(format, values, back_end, tag));
    return send(back_end, packet);
}

int Network::send(Rank back_end, int tag, const void** values, const char* format)
{
    PacketPtr packet(new Packet(back_end, tag, values, format));
    return send(back_end, packet);
}

int Network::send(Rank back_end, PacketPtr& packet)
{
    Stream* stream;
    {
        Engine::Hold hold(*engine_);
        stream = engine_->ended ? NULL : engine_->direct(back_end);
    }
    if (stream == NULL) {
        error(ERR_INTERNAL, engine_->rank, "no packet can be sent to rank %u from here", back_end);
        return -1;
    }
    return stream->send(packet);
}

bool Network::enable_PerformanceData(perfdata_metric_t metric, perfdata_context_t context)
{
    if (!is_measurable(metric, context))
        return false;
    Engine::Hold hold(*engine_);
    for (auto& entry : engine_->streams)
        entry.second->contents().measured.insert({metric, context});
    return true;
}

bool Network::disable_PerformanceData(perfdata_metric_t metric, perfdata_context_t context)
{
    Engine::Hold hold(*engine_);
    bool was_enabled = false;
    for (auto& entry : engine_->streams)
        was_enabled |= entry.second->contents().measured.erase({metric, context}) > 0;
    return was_enabled;
}

bool Network::collect_PerformanceData(std::map<int, rank_perfdata_map>& by_stream,
                                      perfdata_metric_t metric, perfdata_context_t context,
                                      int aggregation)
{
    Engine::Hold hold(*engine_);
    bool has_any = false;
    for (auto& entry : engine_->streams) {
        StreamContents& stream = entry.second->contents();
        if (stream.measured.count({metric, context}) == 0)
            continue;
        if (!collect_measured(*engine_, stream, by_stream[int(stream.shown_id())], metric, context,
                              aggregation))
            return false;
        has_any = true;
    }
    return has_any;
}

void Network::print_PerformanceData(perfdata_metric_t metric, perfdata_context_t context)
{
    std::map<int, rank_perfdata_map> by_stream;
    if (collect_PerformanceData(by_stream, metric, context))
        for (const auto& entry : by_stream)
            print_measured(unsigned(entry.first), entry.second, metric, context);
}

void Network::clear_Events()
{
    Engine::Hold hold(*engine_);
    engine_->events.clear_Events();
}

unsigned int Network::num_EventsPending()
{
    engine_->refresh();
    Engine::Hold hold(*engine_);
    return engine_->events.get_NumEvents();
}

Event* Network::next_Event()
{
    engine_->refresh();
    Engine::Hold hold(*engine_);
    return engine_->events.get_NextEvent();
}

int Network::get_EventNotificationFd(EventClass event_class)
{
    Engine::Hold hold(*engine_);
    return engine_->events.get_Pipe(event_class)->get_ReadFd();
}

void Network::clear_EventNotificationFd(EventClass event_class)
{
    Engine::Hold hold(*engine_);
    if (engine_->events.has_Pipe(event_class))
        engine_->events.get_Pipe(event_class)->clear();
}

void Network::close_EventNotificationFd(EventClass event_class)
{
    Engine::Hold hold(*engine_);
    engine_->events.close_Pipe(event_class);
}

bool Network::register_EventCallback(EventClass event_class, EventType type, evt_cb_func function,
                                     void* data, bool once)
{
    Engine::Hold hold(*engine_);
    return engine_->events.register_Callback(function, data, event_class, type, once);
}

bool Network::remove_EventCallback(evt_cb_func function, EventClass event_class, EventType type)
{
    Engine::Hold hold(*engine_);
    return engine_->events.remove_Callback(function, event_class, type);
}

bool Network::remove_EventCallbacks(EventClass event_class, EventType type)
{
    Engine::Hold hold(*engine_);
    return engine_->events.remove_Callbacks(event_class, type);
}

bool Network::set_FailureRecovery(bool enable)
{
    Engine::Hold hold(*engine_);
    return engine_->set_recovering(enable);
}

}  // namespace MRN
