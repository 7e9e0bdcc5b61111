/*
 * Numbers and settings that the other headers share.
 */
#ifndef MRNET_LIGHTWEIGHT_TYPES_H
#define MRNET_LIGHTWEIGHT_TYPES_H

#include "mrnet_lightweight/Shared.h"
#include "xplat_lightweight/Types.h"

#ifdef __cplusplus
using namespace MRN_shared;
#endif

#define MRNET_VERSION_MAJOR 5
#define MRNET_VERSION_MINOR 0
#define MRNET_VERSION_REV 1

#define FirstSystemTag 0
#define FirstApplicationTag 100

#define INVALID_STREAM_ID ((unsigned int)-1)

typedef enum { NODE_TYPE_FRONTEND = 0, NODE_TYPE_BACKEND, NODE_TYPE_INTERNALNODE } node_type_t;

/* Fewer keys than in C++: numbers from 4 on differ. */
typedef enum {
    MRNET_DEBUG_LEVEL = 0,
    MRNET_DEBUG_LOG_DIRECTORY,
    MRNET_COMMNODE_PATH,
    MRNET_FAILURE_RECOVERY,
    XPLAT_RSH,
    XPLAT_RSH_ARGS,
    XPLAT_REMCMD
} net_settings_key_t;

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
    PERFDATA_PKT_TIMERS_MAX
} perfdata_pkt_timers_t;

#endif
