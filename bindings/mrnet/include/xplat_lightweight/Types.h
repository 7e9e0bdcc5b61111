/*
 * Types of the platform that the headers are written in, and what they bring in by themselves.
 *
 * Names that are macros in MRNet are types here, so that <rpc/types.h> and headers in C++ may have
 * them, too; a macro that is there already stays.
 */
#ifndef XPLAT_LIGHTWEIGHT_TYPES_H
#define XPLAT_LIGHTWEIGHT_TYPES_H

#include "xplat_lightweight/Types-unix.h"

#ifndef bool_t
typedef int bool_t;
#endif
#ifndef char_t
typedef char char_t;
#endif
#ifndef uchar_t
typedef unsigned char uchar_t;
#endif
#ifndef enum_t
typedef int32_t enum_t;
#endif

#endif
