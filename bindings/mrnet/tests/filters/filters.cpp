/*
 * Filters with MRNet's signature, for loaded_filters.cpp to load.
 */
#include <cstring>

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

/* Synchronises: lets packets go by so many as the parameter says, at first by one. */
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
