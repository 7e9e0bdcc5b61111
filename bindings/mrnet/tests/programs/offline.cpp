/*
 * What needs no network: packets, values, events, errors, trees, locks, versions.
 *
 *     offline SCRATCH-FOLDER
 */
#include <poll.h>

#include <cerrno>
#include <cstring>

#include "answer.hpp"
#include "mrnet/ParadynFilterIds.h"

using namespace MRN;

namespace {

PacketPtr of_list(const char* format, ...)
{
    va_list values;
    va_start(values, format);
    PacketPtr packet(new Packet(format, values, 7, TAG_SUM));
    va_end(values);
    return packet;
}

int unpack_list(PacketPtr packet, const char* format, ...)
{
    va_list places;
    va_start(places, format);
    int result = packet->unpack(places, format, false);
    va_end(places);
    return result;
}

int packets()
{
    uint32_t count = 3;
    int32_t values[] = {1, 2, 3};
    const void* pointers[] = {values, &count, "text"};
    PacketPtr one(new Packet(7, TAG_SUM, "%ad %s", values, count, "text"));
    PacketPtr other(new Packet(7, TAG_SUM, pointers, "%ad %s"));
    PacketPtr third = of_list("%ad %s", values, count, "other");
    DEMAND(*one == *other && *one != *third && !Packet::NullPacket);
    DEMAND(one->get_Tag() == TAG_SUM && one->get_StreamId() == 7);
    DEMAND(strcmp(one->get_FormatString(), "%ad %s") == 0);
    one->set_Tag(TAG_RANK);
    one->set_StreamId(8);
    DEMAND(one->get_Tag() == TAG_RANK && one->get_StreamId() == 8);
    DEMAND(one->get_SourceRank() == UnknownRank && one->get_InletNodeRank() == UnknownRank);
    int32_t* copy = NULL;
    char* text = NULL;
    DEMAND(unpack_list(one, "%ad %s", &copy, &count, &text) == 0);
    DEMAND(count == 3 && copy != values && copy[2] == 3 && strcmp(text, "text") == 0);
    free(copy), free(text);
    DEMAND(one->unpack("%d", &count) == -1 && one->has_Error() && one->get_Error() == ERR_FORMATSTR);
    DEMAND(PacketPtr(new Packet(7, TAG_SUM, "%q", 1))->get_Error() == ERR_FORMATSTR);
    Rank to[] = {1, 2}, *read = NULL;
    unsigned int number = 0;
    DEMAND(!one->get_Destinations(number, &read) && one->set_Destinations(to, 2));
    DEMAND(one->get_Destinations(number, &read) && number == 2 && read[1] == 2);
    uint32_t one_element = 1;
    int32_t* given = static_cast<int32_t*>(malloc(sizeof *given));
    *given = 5;
    PacketPtr owner(new Packet(7, TAG_SUM, "%ad", given, one_element));
    owner->set_DestroyData(true);
    return 0;
}

int elements()
{
    uint32_t count = 2;
    uint64_t large = 0;
    double values[] = {0.5, 1.5};
    DataType type;
    Packet packet(7, TAG_SUM, "%c %alf %s %uld", 'x', values, count, "text", uint64_t(9));
    DEMAND(packet[0]->get_Type() == CHAR_T && packet[0]->get_char() == 'x' && packet[4] == NULL);
    DEMAND(packet[1]->get_array(&type, &count) == values && type == DOUBLE_ARRAY_T && count == 2);
    DEMAND(packet[1]->get_array(&type, &large) == values && large == 2);
    DEMAND(strcmp(packet[2]->get_string(), "text") == 0 && packet[3]->get_uint64_t() == 9);
    DataElement element;
    DEMAND(element.get_Type() == UNKNOWN_T);
#define ROUND(name, data_type, value)                                 \
    element.set_##name(value);                                        \
    DEMAND(element.get_Type() == data_type && element.get_##name() == value);
    ROUND(char, CHAR_T, 'a')
    ROUND(uchar, UCHAR_T, 200)
    ROUND(int16_t, INT16_T, -5)
    ROUND(uint16_t, UINT16_T, 65000)
    ROUND(int32_t, INT32_T, -70000)
    ROUND(uint32_t, UINT32_T, 4000000000u)
    ROUND(int64_t, INT64_T, -5000000000)
    ROUND(uint64_t, UINT64_T, 5000000000u)
    ROUND(float, FLOAT_T, 0.5f)
    ROUND(double, DOUBLE_T, 0.25)
#undef ROUND
    element.set_string("text");
    DEMAND(element.get_Type() == STRING_T && strcmp(element.get_string(), "text") == 0);
    element.set_array(values, DOUBLE_ARRAY_T, uint32_t(2));
    element.set_array(malloc(8), DOUBLE_LRG_ARRAY_T, uint64_t(1));
    element.set_DestroyData(true);
    DataElement copy(element), other;
    other.operator=(copy);
    DEMAND(other.get_Type() == DOUBLE_LRG_ARRAY_T && other.get_array(&type, &large) != NULL);
    DEMAND(Fmt2Type("d") == INT32_T && Fmt2Type("alf") == DOUBLE_ARRAY_T);
    DEMAND(Fmt2Type("As") == STRING_LRG_ARRAY_T && Fmt2Type("q") == UNKNOWN_T);
    return 0;
}

void called(Event*, void*) {}

int events()
{
    EventPipe pipe;
    pollfd watched = {pipe.get_ReadFd(), POLLIN, 0};
    DEMAND(poll(&watched, 1, 0) == 0);
    pipe.signal();
    DEMAND(poll(&watched, 1, 0) == 1);
    pipe.clear();
    DEMAND(poll(&watched, 1, 0) == 0);
    EventMgr manager;
    TopologyEvent::TopolEventData* place = new TopologyEvent::TopolEventData(3, 1);
    ErrorEvent::ErrorEventData* fault = new ErrorEvent::ErrorEventData(2, "broken");
    DEMAND(place->get_Rank() == 3 && place->get_Parent_Rank() == 1);
    DEMAND(fault->get_Rank() == 2 && strcmp(fault->get_Message(), "broken") == 0);
    DEMAND(manager.register_Callback(called, NULL, Event::EVENT_CLASS_ALL, Event::EVENT_TYPE_ALL, true));
    DEMAND(manager.has_Callbacks() && manager.is_Wanted(Event::ERROR_EVENT));
    manager.add_Event(new TopologyEvent(TopologyEvent::TOPOL_ADD_CP, place));
    manager.add_Event(new ErrorEvent(ErrorEvent::ERROR_USAGE, fault));
    manager.add_Event(new DataEvent(DataEvent::DATA_AVAILABLE, new DataEvent::DataEventData(NULL)));
    DEMAND(manager.get_NumEvents() == 3);
    Event* event = manager.get_NextEvent();
    DEMAND(event->get_Class() == Event::TOPOLOGY_EVENT && event->get_Data() == place);
    DEMAND(event->get_Type() == TopologyEvent::TOPOL_ADD_CP);
    DEMAND(manager.take_Callbacks(*event).size() == 1 && !manager.has_Callbacks());
    DEMAND(!manager.remove_Callback(called, Event::EVENT_CLASS_ALL, Event::EVENT_TYPE_ALL));
    DEMAND(!manager.remove_Callbacks(Event::EVENT_CLASS_ALL, Event::EVENT_TYPE_ALL));
    delete place;
    delete event;
    DEMAND(manager.get_Pipe(Event::DATA_EVENT) != NULL && manager.has_Pipe(Event::DATA_EVENT));
    manager.close_Pipe(Event::DATA_EVENT);
    DEMAND(!manager.has_Pipe(Event::DATA_EVENT));
    manager.clear_Events();
    DEMAND(manager.get_NumEvents() == 0);
    return 0;
}

int faults(const std::string& folder)
{
    Error error;
    DEMAND(!error.has_Error() && strcmp(error.get_ErrorStr(ERR_NONE), errors[ERR_NONE].msg) == 0);
    error.error(ERR_PACKING, 3, "value %d", 7);
    DEMAND(error.has_Error() && error.get_Error() == ERR_PACKING);
    DEMAND(strcmp(error.get_ErrorStr(ERR_PACKING), "value 7") == 0);
    error.perror("expected");
    int major, minor, revision;
    get_Version(major, minor, revision);
    DEMAND(major == MRNET_VERSION_MAJOR && minor == 0 && revision == 1);
    set_OutputLevel(9);
    DEMAND(CUR_OUTPUT_LEVEL == MAX_OUTPUT_LEVEL);
    set_OutputLevel(MIN_OUTPUT_LEVEL);
    FILE* file = fopen((folder + "/lines.txt").c_str(), "w");
    DEMAND(file != NULL && mrn_printf_init(file) == 0);
    DEMAND(mrn_printf(__FILE__, __LINE__, "faults", NULL, "a line\n") == 7);
    mrn_printf_init(NULL);
    fclose(file);
    DEMAND(TFILTER_GET_CLOCK_SKEW != TFILTER_PD_UINT_EQ_CLASS);
    DEMAND(TFILTER_SAVE_LOCAL_CLOCK_SKEW_UPSTREAM != TFILTER_SAVE_LOCAL_CLOCK_SKEW_DOWNSTREAM);
    return 0;
}

int trees(const std::string& folder)
{
    std::string path = folder + "/tree.top", host = "localhost", balanced = "4^2", knomial = "2@8",
                generic = "2:3,1", wrong = "0x";
    Tree::HostList hosts, others;
    Tree::get_HostsFromBuffer("localhost:64\nlocalhost\n", hosts);
    DEMAND(hosts.size() == 2 && hosts.front().second == 64);
    FILE* list = fopen((folder + "/hosts").c_str(), "w");
    DEMAND(list != NULL && fputs("localhost\n", list) >= 0 && fclose(list) == 0);
    DEMAND(Tree::get_HostsFromFile((folder + "/hosts").c_str(), others) && others.size() == 1);
    list = fopen((folder + "/hosts").c_str(), "r");
    DEMAND(Tree::get_HostsFromFileStream(list, others) && others.size() == 2 && fclose(list) == 0);
    DEMAND(!Tree::get_HostsFromFile((folder + "/none").c_str(), others));
    BalancedTree tree(balanced, host, hosts, 64);
    DEMAND(tree.is_Valid() && tree.create_TopologyFile(path.c_str()));
    FILE* out = fopen(path.c_str(), "w");
    DEMAND(KnomialTree(knomial, host, hosts, 64).create_TopologyFile(out) && fclose(out) == 0);
    DEMAND(GenericTree(generic, host, hosts, 64).is_Valid());
    DEMAND(BalancedTree(balanced, host, hosts, others, 64, 64).is_Valid());
    DEMAND(KnomialTree(knomial, host, hosts, others, 64, 64).is_Valid());
    DEMAND(GenericTree(generic, host, hosts, others, 64, 64).is_Valid());
    DEMAND(!BalancedTree(wrong, host, hosts, 64).is_Valid());
    DEMAND(!BalancedTree(balanced, host, hosts, 1).is_Valid());
    return 0;
}

int locks()
{
    XPlat::Mutex mutex;
    DEMAND(mutex.Lock() == 0 && mutex.Lock() == 0 && mutex.Unlock() == 0 && mutex.Unlock() == 0);
    XPlat::Monitor monitor;
    DEMAND(monitor.TryLock() == 0 && monitor.Lock() == 0 && monitor.Unlock() == 0);
    DEMAND(monitor.WaitOnCondition(1) == -1 && monitor.RegisterCondition(1) == 0);
    DEMAND(monitor.TimedWaitOnCondition(1, 1) == ETIMEDOUT);
    DEMAND(monitor.SignalCondition(1) == 0 && monitor.BroadcastCondition(1) == 0);
    DEMAND(monitor.SignalCondition(2) == -1 && monitor.Unlock() == 0);
    return 0;
}

}  // namespace

int main(int argc, char* argv[])
{
    DEMAND(argc == 2);
    DEMAND(packets() == 0 && elements() == 0 && events() == 0 && faults(argv[1]) == 0);
    DEMAND(trees(argv[1]) == 0 && locks() == 0);
    boost::shared_ptr<Packet> packet = PacketPtr(new Packet(7, TAG_SUM, "%d", 1));
    DEMAND(packet && Network::CreateNetworkBE(2, argv) == NULL);
    char words[][8] = {"host", "1", "2", "host", "3"};
    char* place[] = {words[0], words[1], words[2], words[3], words[4]};
    DEMAND(Network::CreateNetworkIN(2, place) == NULL);
    Network* internal = Network::CreateNetworkIN(5, place);
    DEMAND(internal != NULL && internal->is_LocalNodeInternal() && internal->get_LocalRank() == 3);
    internal->waitfor_ShutDown();
    DEMAND(internal->has_Error());
    delete internal;
    printf("all there\n");
    return 0;
}
