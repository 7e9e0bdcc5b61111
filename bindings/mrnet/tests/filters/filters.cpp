/*
 * Filters with MRNet's signature, for loaded_filters.cpp to load.
 */
#include <cstring>
#include <map>
#include <set>

#include "mrnet/MRNet.h"
#include "../programs/protocol.h"

using namespace MRN;

extern "C" {

/* The sum of all numbers, times the parameter, if there is one. */
const char* scaled_sum_format_string = "%d";
void scaled_sum(std::vector<PacketPtr>& in, std::vector<PacketPtr>& out, std::vector<PacketPtr>&,
                void**, PacketPtr& params, const TopologyLocalInfo& place)
{
    int sum = 0, factor = 1;
    if (params != Packet::NullPacket && place.get_RootDistance() == 0)
        params->unpack("%d", &factor);
    for (PacketPtr& packet : in)
        sum += (*packet)[0]->get_int32_t();
    out.push_back(PacketPtr(new Packet(in[0]->get_StreamId(), in[0]->get_Tag(), "%d", sum * factor)));
}

/* How many packets this instance has seen, and where it is. */
const char* count_waves_format_string = "";
void count_waves(std::vector<PacketPtr>& in, std::vector<PacketPtr>& out, std::vector<PacketPtr>&,
                 void** state, PacketPtr&, const TopologyLocalInfo& place)
{
    if (*state == NULL)
        *state = calloc(1, sizeof(int));
    int* waves = static_cast<int*>(*state);
    (*waves)++;
    const uint32_t count = 2;
    const char** names = static_cast<const char**>(malloc(count * sizeof *names));
    uint32_t* numbers = static_cast<uint32_t*>(malloc(count * sizeof *numbers));
    names[0] = "children", names[1] = "leaves";
    numbers[0] = place.get_NumChildren(), numbers[1] = place.get_NumLeafDescendants();
    out.push_back(PacketPtr(new Packet(in[0]->get_StreamId(), in[0]->get_Tag(), "%d %aud %as %s", *waves,
                                       numbers, count, names, count, "counted")));
    /* Arrays are not copied: they go with the packet. */
    out.back()->set_DestroyData(true);
}

PacketPtr count_waves_get_state(void** state, int stream_id)
{
    return *state == NULL ? Packet::NullPacket
                          : PacketPtr(new Packet(unsigned(stream_id), TAG_QUIET, "%d",
                                                 *static_cast<int*>(*state)));
}

/* Answers a request at the first process that it meets. */
const char* turn_back_format_string = "";
void turn_back(std::vector<PacketPtr>& in, std::vector<PacketPtr>& out, std::vector<PacketPtr>& out_reverse,
               void**, PacketPtr&, const TopologyLocalInfo& place)
{
    for (PacketPtr& packet : in) {
        if (packet->get_Tag() == TAG_RANK)
            out_reverse.push_back(
                PacketPtr(new Packet(packet->get_StreamId(), TAG_RANK, "%ud", place.get_Rank())));
        else
            out.push_back(packet);
    }
}

/* Synchronises: returns packets in groups of the size that the parameter states, at first one. */
const char* by_number_format_string = "%d";
void by_number(std::vector<PacketPtr>& in, std::vector<PacketPtr>& out, std::vector<PacketPtr>&, void** state,
               PacketPtr& params, const TopologyLocalInfo&)
{
    if (*state == NULL)
        *state = new std::vector<PacketPtr>;
    std::vector<PacketPtr>& held = *static_cast<std::vector<PacketPtr>*>(*state);
    int number = 1;
    if (params != Packet::NullPacket)
        params->unpack("%d", &number);
    held.insert(held.end(), in.begin(), in.end());
    if (held.size() < size_t(number))
        return;
    out = held;
    held.clear();
}

/* Synchronises: lets packets go that are not 0, and answers those that are. */
const char* without_zeros_format_string = "";
void without_zeros(std::vector<PacketPtr>& in, std::vector<PacketPtr>& out, std::vector<PacketPtr>& out_reverse,
                   void**, PacketPtr&, const TopologyLocalInfo&)
{
    for (PacketPtr& packet : in) {
        if ((*packet)[0]->get_int32_t() != 0)
            out.push_back(packet);
        else
            out_reverse.push_back(PacketPtr(new Packet(packet->get_StreamId(), TAG_SUM, "%d", 7)));
    }
}

/* The sum of all numbers, and one for this run. */
const char* add_one_format_string = "%d";
void add_one(std::vector<PacketPtr>& in, std::vector<PacketPtr>& out, std::vector<PacketPtr>&, void**, PacketPtr&,
             const TopologyLocalInfo&)
{
    int sum = 1;
    for (PacketPtr& packet : in)
        sum += (*packet)[0]->get_int32_t();
    out.push_back(PacketPtr(new Packet(in[0]->get_StreamId(), in[0]->get_Tag(), "%d", sum)));
}

/* The sum of all numbers, and one for each run that this process has had. */
const char* add_runs_format_string = "%d";
void add_runs(std::vector<PacketPtr>& in, std::vector<PacketPtr>& out, std::vector<PacketPtr>&, void** state,
              PacketPtr&, const TopologyLocalInfo&)
{
    if (*state == NULL)
        *state = calloc(1, sizeof(int));
    int sum = ++*static_cast<int*>(*state);
    for (PacketPtr& packet : in)
        sum += (*packet)[0]->get_int32_t();
    out.push_back(PacketPtr(new Packet(in[0]->get_StreamId(), in[0]->get_Tag(), "%d", sum)));
}

/* Halves of the numbers, of another format than they came in. */
const char* halves_format_string = "%d";
void halves(std::vector<PacketPtr>& in, std::vector<PacketPtr>& out, std::vector<PacketPtr>&, void**, PacketPtr&,
            const TopologyLocalInfo&)
{
    for (PacketPtr& packet : in)
        out.push_back(PacketPtr(new Packet(packet->get_StreamId(), packet->get_Tag(), "%lf",
                                           (*packet)[0]->get_int32_t() / 2.0)));
}

/* Of two packets one with their sum. */
const char* pairs_format_string = "%d";
void pairs(std::vector<PacketPtr>& in, std::vector<PacketPtr>& out, std::vector<PacketPtr>&, void** state,
           PacketPtr&, const TopologyLocalInfo&)
{
    if (*state == NULL)
        *state = new std::vector<int>;
    std::vector<int>& held = *static_cast<std::vector<int>*>(*state);
    for (PacketPtr& packet : in)
        held.push_back((*packet)[0]->get_int32_t());
    if (held.size() < 2)
        return;
    out.push_back(PacketPtr(new Packet(in[0]->get_StreamId(), in[0]->get_Tag(), "%d", held[0] + held[1])));
    held.erase(held.begin(), held.begin() + 2);
}

/* Each number twice, as two packets. */
const char* twofold_format_string = "%d";
void twofold(std::vector<PacketPtr>& in, std::vector<PacketPtr>& out, std::vector<PacketPtr>&, void**, PacketPtr&,
             const TopologyLocalInfo&)
{
    for (PacketPtr& packet : in)
        for (int copy = 0; copy < 2; copy++)
            out.push_back(PacketPtr(new Packet(packet->get_StreamId(), packet->get_Tag(), "%d",
                                               (*packet)[0]->get_int32_t())));
}

/* All elements of arrays, doubled. */
const char* doubled_format_string = "%ad";
void doubled(std::vector<PacketPtr>& in, std::vector<PacketPtr>& out, std::vector<PacketPtr>&, void**, PacketPtr&,
             const TopologyLocalInfo&)
{
    for (PacketPtr& packet : in) {
        int32_t* numbers = NULL;
        uint32_t count = 0;
        packet->unpack("%ad", &numbers, &count);
        for (uint32_t at = 0; at < count; at++)
            numbers[at] *= 2;
        out.push_back(PacketPtr(new Packet(packet->get_StreamId(), packet->get_Tag(), "%ad", numbers, count)));
        out.back()->set_DestroyData(true);
    }
}

/* On the way down: one more than came, times the parameter. */
const char* one_more_format_string = "%d";
void one_more(std::vector<PacketPtr>& in, std::vector<PacketPtr>& out, std::vector<PacketPtr>&, void**,
              PacketPtr& params, const TopologyLocalInfo&)
{
    int factor = 1;
    if (params != Packet::NullPacket)
        params->unpack("%d", &factor);
    for (PacketPtr& packet : in)
        out.push_back(PacketPtr(new Packet(packet->get_StreamId(), packet->get_Tag(), "%d",
                                           factor * ((*packet)[0]->get_int32_t() + 1))));
}

/* Synchronises: lets a packet of each child go when there is one of each, as the topology and the stream know
   them. At a back-end there is none, and packets come from nowhere. */
const char* one_of_each_format_string = "%d";
void one_of_each(std::vector<PacketPtr>& in, std::vector<PacketPtr>& out, std::vector<PacketPtr>&, void** state,
                 PacketPtr&, const TopologyLocalInfo& place)
{
    Network* net = const_cast<Network*>(place.get_Network());
    Stream* stream = net == NULL ? NULL : net->get_Stream(in[0]->get_StreamId());
    if (stream == NULL || place.get_Rank() != net->get_LocalRank())
        throw 1;
    NetworkTopology* topology = net->get_NetworkTopology();
    TopologyLocalInfo again(topology, topology->find_Node(net->get_LocalRank()));
    if (again.get_NumChildren() != place.get_NumChildren() || again.get_Network() != net)
        throw 1;
    typedef std::map<Rank, std::vector<PacketPtr>> Held;
    if (*state == NULL)
        *state = new Held;
    Held& held = *static_cast<Held*>(*state);
    for (PacketPtr& packet : in)
        held[packet->get_InletNodeRank()].push_back(packet);
    std::set<Rank> children;
    stream->get_ChildRanks(children);
    for (Rank child : children)
        if (!net->node_Failed(child) && held[child].empty())
            return;
    for (Rank child : children)
        if (!held[child].empty()) {
            out.push_back(held[child].front());
            held[child].erase(held[child].begin());
        }
}

const char* throwing_format_string = "";
void throwing(std::vector<PacketPtr>&, std::vector<PacketPtr>&, std::vector<PacketPtr>&, void**, PacketPtr&,
              const TopologyLocalInfo&)
{
    throw 1;
}

void without_format(std::vector<PacketPtr>&, std::vector<PacketPtr>&, std::vector<PacketPtr>&, void**,
                    PacketPtr&, const TopologyLocalInfo&)
{
}
}
