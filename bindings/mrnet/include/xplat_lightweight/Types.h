/*
 * Types of the platform that the headers are written in.
 */
#ifndef XPLAT_LIGHTWEIGHT_TYPES_H
#define XPLAT_LIGHTWEIGHT_TYPES_H

#include <stdint.h>

typedef uint16_t XPlat_Port;
typedef int XPlat_Socket;

/* The version of MRNet whose names these are. */
const char *xplat_lightweight_version(void);

#endif
