/*
 * All headers of both languages in one unit, those in C first.
 */
#include "mrnet_lightweight/MRNet.h"
#include "xplat_lightweight/Error.h"
#include "xplat_lightweight/Monitor.h"
#include "xplat_lightweight/Mutex.h"
#include "xplat_lightweight/NetUtils.h"
#include "xplat_lightweight/PathUtils.h"
#include "xplat_lightweight/Process.h"
#include "xplat_lightweight/SocketUtils.h"
#include "xplat_lightweight/Thread.h"
#include "xplat_lightweight/map.h"
#include "xplat_lightweight/vector.h"
#include "xplat_lightweight/xplat_utils_lightweight.h"
#include "mrnet/MRNet.h"
#include "mrnet/ParadynFilterIds.h"
#include "xplat/Atomic.h"
#include "xplat/Error.h"
#include "xplat/NetUtils.h"
#include "xplat/Once.h"
#include "xplat/PathUtils.h"
#include "xplat/Process.h"
#include "xplat/SharedObject.h"
#include "xplat/SocketUtils.h"
#include "xplat/TLSKey.h"
#include "xplat/Thread.h"
#include "xplat/Tokenizer.h"
#include "xplat/xplat_utils.h"

#include "../check.h"

using namespace MRN;

/* Neither set of names hides the other's. */
static int in_cpp()
{
    Rank rank = UnknownRank;
    Port port = UnknownPort;
    DataType type = CHAR_T;
    ErrorCode code = ERR_NONE;
    PacketPtr packet(new Packet(7, FirstApplicationTag, "%d %s", 5, "text"));
    DEMAND((*packet)[0]->get_int32_t() == 5 && (*packet)[0]->get_Type() == INT32_T);
    DEMAND(packet->get_SourceRank() == MRN::UnknownRank && packet->get_Error() == code);
    DEMAND(rank == MRN::UnknownRank && port == MRN::UnknownPort && type == MRN::CHAR_T);
    perfdata_metric_t metric = PERFDATA_MET_NUM_PKTS;
    perfdata_context_t context = PERFDATA_CTX_PKT_FILTER_TO_SEND;
    perfdata_t value = {7};
    DEMAND(metric == 1 && context == 15 && value.i == 7 && PERFDATA_TYPE_FLOAT == 2);
    DEMAND(errors[ERR_FORMATSTR].level == ERR_ERR && errors[ERR_NONE].response == ERR_IGNORE);
    DEMAND(FE_NODE == 1 && NODE_TYPE_BACKEND == 1 && ERR_INFO == 0 && ERR_CRIT == 3);
    DEMAND(Fmt2Type("c") == type && &MRN::UnknownRank == &::UnknownRank);
    DEMAND(INVALID_STREAM_ID == 0xffffffffu && MRNET_VERSION_MAJOR == 5);
    std::string name;
    DEMAND(XPlat::NetUtils::GetLocalHostName(name) == 0 && name.size() < XPLAT_MAX_HOSTNAME_LEN);
    DEMAND(XPlat::SocketUtils::InvalidSocket == InvalidSocket);
    XPlat::set_DebugLevel(2);
    DEMAND(XPlat::get_DebugLevel() == 2 && get_DebugLevel() == 0);
    return 0;
}

static int in_c()
{
    ::Rank rank = ::UnknownRank;
    ::Port port = ::UnknownPort;
    ::DataType type = ::DOUBLE_T;
    bool_t is_good = true;
    int number = 0;
    DEMAND(rank == 0xffffffffu && port == 65535 && type == DOUBLE_T && ::ERR_NONE == 0);
    Packet_t* packet = new_Packet_t_2(7, FirstApplicationTag, "%d", 5);
    DEMAND(packet != NULL && Packet_unpack(packet, "%d", &number) == 0 && number == 5);
    Packet_set_DestroyData(packet, is_good);
    delete_Packet_t(packet);
    vector_t* vector = new_empty_vector_t();
    mrn_map_t* map = new_map_t();
    pushBackElement(vector, map);
    insert(map, 3, vector);
    DEMAND(get_val(map, 3) == vector && popBackElement(vector) == map);
    delete_map_t(map);
    delete_vector_t(vector);
    Monitor_t* monitor = Monitor_construct();
    DEMAND(monitor != NULL && Monitor_Lock(monitor) == 0 && Monitor_Unlock(monitor) == 0);
    DEMAND(Monitor_destruct(monitor) == 0);
    return 0;
}

int main()
{
    ALSO(in_cpp());
    return in_c();
}
