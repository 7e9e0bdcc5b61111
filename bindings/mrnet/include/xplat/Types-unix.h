/*
 * What the system has that every header of MRNet brings in by itself.
 */
#ifndef XPLAT_TYPES_UNIX_H
#define XPLAT_TYPES_UNIX_H

#include <cassert>
#include <cerrno>
#include <cinttypes>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "xplat_lightweight/Types-unix.h"

#endif
