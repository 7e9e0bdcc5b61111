/*
 * Types of the platform that MRNet's headers are written in; both languages have the same.
 */
#ifndef XPLAT_TYPES_H
#define XPLAT_TYPES_H

#include "xplat/Types-unix.h"
#include "xplat_lightweight/Types.h"

#endif
