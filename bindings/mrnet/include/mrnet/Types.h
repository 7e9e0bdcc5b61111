/*
 * Numbers, limits and settings that the other headers share.
 */
#ifndef MRNET_TYPES_H
#define MRNET_TYPES_H

#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "boost/shared_ptr.hpp"
#include "mrnet_lightweight/Shared.h"
#include "xplat/Types.h"

#define MRNET_VERSION_MAJOR 5
#define MRNET_VERSION_MINOR 0
#define MRNET_VERSION_REV 1

/* Tags of a tool's own packets begin here. */
#define FirstSystemTag 0
#define FirstApplicationTag 100

namespace MRN {

/* Port, Rank, DataType, what is said of errors, and kinds of performance data. */
using namespace MRN_shared;

class Packet;
typedef boost::shared_ptr<Packet> PacketPtr;

typedef enum { UNKNOWN_NODE = 0, FE_NODE, BE_NODE, CP_NODE } node_type_t;

void get_Version(int& major, int& minor, int& revision);

/* What is written about the layer's own work: nothing at 0, everything at 5. */
extern const int MIN_OUTPUT_LEVEL;
extern const int MAX_OUTPUT_LEVEL;
extern int CUR_OUTPUT_LEVEL;
extern char* MRN_DEBUG_LOG_DIRECTORY;
void set_OutputLevel(int level = 1);
int mrn_printf_init(FILE* file);
int mrn_printf(const char* file, int line, const char* function, FILE* to, const char* format, ...)
    __attribute__((format(printf, 5, 6)));

/* Keys of a network's attributes. */
typedef enum {
    MRNET_DEBUG_LEVEL = 0,
    MRNET_DEBUG_LOG_DIRECTORY,
    MRNET_COMMNODE_PATH,
    MRNET_FAILURE_RECOVERY,
    MRNET_STARTUP_TIMEOUT,
    MRNET_PORT_BASE,
    MRNET_EVENT_WAIT_TIMEOUT_MSEC,
    MRNET_TOPOLOGY_UPDATE_TIMEOUT_MSEC,
    XPLAT_RSH,
    XPLAT_RSH_ARGS,
    XPLAT_REMCMD,
    CRAY_ALPS_APID,
    CRAY_ALPS_APRUN_PID,
    CRAY_ALPS_STAGE_FILES
} net_settings_key_t;

/* Performance data. */
typedef std::map<Rank, std::vector<perfdata_t>> rank_perfdata_map;

typedef enum {
    PERFDATA_PKT_TIMERS_RECV = 0,
    PERFDATA_PKT_TIMERS_SEND,
    PERFDATA_PKT_TIMERS_NET_SENDCHILD,
    PERFDATA_PKT_TIMERS_NET_SENDPAR,
    PERFDATA_PKT_TIMERS_INT_DATAPAR,
    PERFDATA_PKT_TIMERS_INT_DATACHILD,
    PERFDATA_PKT_TIMERS_FILTER,
    PERFDATA_PKT_TIMERS_RECV_TO_FILTER,
    PERFDATA_PKT_TIMERS_FILTER_TO_SEND,
    PERFDATA_PKT_TIMERS_FILTER_SYNC,
    PERFDATA_PKT_TIMERS_FILTER_UPDOWN,
    PERFDATA_PKT_TIMERS_MAX
} perfdata_pkt_timers_t;

}  // namespace MRN

#endif
