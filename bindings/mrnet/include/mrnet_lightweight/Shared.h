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

#ifdef __cplusplus
}
#endif

#endif
