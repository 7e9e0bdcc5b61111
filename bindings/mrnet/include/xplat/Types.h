/*
 * Types of the platform that MRNet's headers are written in.
 */
#ifndef XPLAT_TYPES_H
#define XPLAT_TYPES_H

#include <cstdint>

namespace XPlat {

typedef uint16_t XPlat_Port;
typedef int XPlat_Socket;

}  // namespace XPlat

#endif
