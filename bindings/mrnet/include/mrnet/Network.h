/*
 * A network: it owns its communicators, end-points and topology, and the streams that its tool has
 * not deleted. Deleting a front-end's network ends the tree.
 */
#ifndef MRNET_NETWORK_H
#define MRNET_NETWORK_H

#include <cstdarg>
#include <iostream>
#include <list>
#include <sstream>

#include "mrnet/CommunicationNode.h"
#include "mrnet/Communicator.h"
#include "mrnet/Error.h"
#include "mrnet/Event.h"
#include "mrnet/FilterIds.h"
#include "mrnet/NetworkTopology.h"
#include "mrnet/Packet.h"
#include "mrnet/Stream.h"
#include "mrnet/Tree.h"
#include "mrnet/Types.h"
#include "xplat/Monitor.h"
#include "xplat/Mutex.h"

namespace MRN {

class Engine;

class Network : public Error {
  public:
    /* Starts a tree. Always gives an object: ask it has_Error(). `back_end_arguments` ends with
       NULL and has no program name. Without a program, back-ends attach by themselves. */
    static Network* CreateNetworkFE(const char* topology, const char* back_end_program,
                                    const char** back_end_arguments,
                                    const std::map<std::string, std::string>* attributes = NULL,
                                    bool rank_back_ends = true, bool topology_is_buffer = false);
    /* Joins a tree by the last five arguments; NULL where there are none. */
    static Network* CreateNetworkBE(int argc, char* argv[]);
    /* Makes this process a communication process; waitfor_ShutDown() is its work. */
    static Network* CreateNetworkIN(int argc, char* argv[]);
    virtual ~Network();

    NetworkTopology* get_NetworkTopology() const;
    bool is_ShutDown() const;
    void waitfor_ShutDown() const;
    void print_error(const char* prefix);
    std::string get_LocalHostName() const;
    Port get_LocalPort() const;
    Rank get_LocalRank() const;
    bool is_LocalNodeChild() const;
    bool is_LocalNodeParent() const;
    bool is_LocalNodeInternal() const;
    bool is_LocalNodeFrontEnd() const;
    bool is_LocalNodeBackEnd() const;
    /* Whether there was a process of that rank and it is known to be gone. */
    bool node_Failed(Rank rank);

    Communicator* get_BroadcastCommunicator() const;
    Communicator* new_Communicator();
    Communicator* new_Communicator(Communicator& other);
    Communicator* new_Communicator(const std::set<Rank>& ranks);
    Communicator* new_Communicator(std::set<CommunicationNode*>& nodes);
    CommunicationNode* get_EndPoint(Rank rank) const;

    /* The number of a filter of a shared object, or -1. */
    int load_FilterFunc(const char* shared_object, const char* function);
    int load_FilterFuncs(const char* shared_object, const std::vector<const char*>& functions,
                         std::vector<int>& filter_ids);

    /* A stream for the tool to delete; NULL when a filter is not known or it has no end-points. */
    Stream* new_Stream(Communicator* communicator, int up = TFILTER_NULL,
                       int sync = SFILTER_WAITFORALL, int down = TFILTER_NULL);
    Stream* new_Stream(Communicator* communicator, std::string up, std::string sync,
                       std::string down);
    Stream* get_Stream(unsigned int id) const;

    /* 1 for a packet, 0 for none, -1 when none can come any more. */
    int recv(int* tag, PacketPtr& packet, Stream** stream, bool blocking = true);
    int flush() const;
    int send(Rank back_end, int tag, const char* format, ...);
    int send(Rank back_end, const char* format, va_list values, int tag);
    int send(Rank back_end, int tag, const void** values, const char* format);
    int send(Rank back_end, PacketPtr& packet);

    bool enable_PerformanceData(perfdata_metric_t metric, perfdata_context_t context);
    bool disable_PerformanceData(perfdata_metric_t metric, perfdata_context_t context);
    bool collect_PerformanceData(std::map<int, rank_perfdata_map>& by_stream,
                                 perfdata_metric_t metric, perfdata_context_t context,
                                 int aggregation = TFILTER_ARRAY_CONCAT);
    void print_PerformanceData(perfdata_metric_t metric, perfdata_context_t context);

    void clear_Events();
    unsigned int num_EventsPending();
    Event* next_Event();
    int get_EventNotificationFd(EventClass event_class);
    void clear_EventNotificationFd(EventClass event_class);
    void close_EventNotificationFd(EventClass event_class);
    /* Callbacks run on the network's own thread. */
    bool register_EventCallback(EventClass event_class, EventType type, evt_cb_func function,
                                void* data, bool once = false);
    bool remove_EventCallback(evt_cb_func function, EventClass event_class, EventType type);
    bool remove_EventCallbacks(EventClass event_class, EventType type);

    /* Whether the network does so from now on. One that was started without (see the attribute
       MRNET_FAILURE_RECOVERY) cannot begin to. */
    bool set_FailureRecovery(bool enable);

    /* What the layer itself needs. */
    Engine& engine() const;

  private:
    friend class FilterSite;
    Network();
    Network(const Network&);
    Network& operator=(const Network&);

    Engine* engine_;
};

}  // namespace MRN

#endif
