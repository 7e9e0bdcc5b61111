/*
 * Types, constants and enumerations that both languages have.
 *
 * In C++ they are one entity for the headers of both, which may stand in one unit: those of C++ lift
 * them into their namespace, those of C into the global one.
 */
#ifndef MRNET_LIGHTWEIGHT_SHARED_H
#define MRNET_LIGHTWEIGHT_SHARED_H

#include "xplat_lightweight/Types.h"

#ifdef __cplusplus
namespace MRN_shared {
extern "C" {
#endif

typedef XPlat_Port Port;
typedef uint32_t Rank;

extern const Port UnknownPort;
extern const Rank UnknownRank;

#ifdef __cplusplus
}
#endif

/* Types of values. */
typedef enum {
    UNKNOWN_T,
    CHAR_T,
    UCHAR_T,
    CHAR_ARRAY_T,
    UCHAR_ARRAY_T,
    STRING_T,
    STRING_ARRAY_T,
    INT16_T,
    UINT16_T,
    INT16_ARRAY_T,
    UINT16_ARRAY_T,
    INT32_T,
    UINT32_T,
    INT32_ARRAY_T,
    UINT32_ARRAY_T,
    INT64_T,
    UINT64_T,
    INT64_ARRAY_T,
    UINT64_ARRAY_T,
    FLOAT_T,
    DOUBLE_T,
    FLOAT_ARRAY_T,
    DOUBLE_ARRAY_T,
    CHAR_LRG_ARRAY_T,
    UCHAR_LRG_ARRAY_T,
    STRING_LRG_ARRAY_T,
    INT16_LRG_ARRAY_T,
    UINT16_LRG_ARRAY_T,
    INT32_LRG_ARRAY_T,
    UINT32_LRG_ARRAY_T,
    INT64_LRG_ARRAY_T,
    UINT64_LRG_ARRAY_T,
    FLOAT_LRG_ARRAY_T,
    DOUBLE_LRG_ARRAY_T
} DataType;

/* What can be wrong. */
typedef enum {
    ERR_NONE = 0,
    ERR_TOPOLOGY_FORMAT,
    ERR_TOPOLOGY_CYCLE,
    ERR_TOPOLOGY_NOTCONNECTED,
    ERR_NETWORK_FAILURE,
    ERR_FORMATSTR,
    ERR_PACKING,
    ERR_INTERNAL,
    ERR_SYSTEM,
    ERR_CODE_LAST
} ErrorCode;

typedef enum {
    ERR_INFO = 0,
    ERR_WARN,
    ERR_ERR,
    ERR_CRIT,
    ERR_LEVEL_LAST
} ErrorLevel;

typedef enum {
    ERR_IGNORE = 0,
    ERR_ALERT,
    ERR_RETRY,
    ERR_ABORT,
    ERR_RESPONSE_LAST
} ErrorResponse;

typedef struct {
    ErrorCode code;
    ErrorLevel level;
    ErrorResponse response;
    const char* msg;
} ErrorDef;

/* Performance data. */
typedef union {
    int64_t i;
    uint64_t u;
    double d;
} perfdata_t;

typedef enum { PERFDATA_TYPE_UINT = 0, PERFDATA_TYPE_INT, PERFDATA_TYPE_FLOAT } perfdata_mettype_t;

typedef struct {
    const char* name;
    const char* units;
    const char* description;
    perfdata_mettype_t type;
} perfdata_metinfo_t;

typedef enum {
    PERFDATA_MET_NUM_BYTES = 0,
    PERFDATA_MET_NUM_PKTS,
    PERFDATA_MET_ELAPSED_SEC,
    PERFDATA_MET_CPU_SYS_PCT,
    PERFDATA_MET_CPU_USR_PCT,
    PERFDATA_MET_MEM_VIRT_KB,
    PERFDATA_MET_MEM_PHYS_KB,
    PERFDATA_MAX_MET
} perfdata_metric_t;

typedef enum {
    PERFDATA_CTX_NONE = 0,
    PERFDATA_CTX_SEND,
    PERFDATA_CTX_RECV,
    PERFDATA_CTX_FILT_IN,
    PERFDATA_CTX_FILT_OUT,
    PERFDATA_CTX_SYNCFILT_IN,
    PERFDATA_CTX_SYNCFILT_OUT,
    PERFDATA_CTX_PKT_RECV,
    PERFDATA_CTX_PKT_SEND,
    PERFDATA_CTX_PKT_NET_SENDCHILD,
    PERFDATA_CTX_PKT_NET_SENDPAR,
    PERFDATA_CTX_PKT_INT_DATAPAR,
    PERFDATA_CTX_PKT_INT_DATACHILD,
    PERFDATA_CTX_PKT_FILTER,
    PERFDATA_CTX_PKT_RECV_TO_FILTER,
    PERFDATA_CTX_PKT_FILTER_TO_SEND,
    PERFDATA_MAX_CTX
} perfdata_context_t;

#ifdef __cplusplus
}
#endif

#endif
