/*
 * MRNet's interface in C, for back-ends: no threads, and nothing but C beneath.
 *
 * The library with `_r` may be used by several threads at once. The headers in C++ may stand in the
 * same unit.
 */
#ifndef MRNET_LIGHTWEIGHT_MRNET_H
#define MRNET_LIGHTWEIGHT_MRNET_H

#include "mrnet_lightweight/DataElement.h"
#include "mrnet_lightweight/Error.h"
#include "mrnet_lightweight/Network.h"
#include "mrnet_lightweight/NetworkTopology.h"
#include "mrnet_lightweight/Packet.h"
#include "mrnet_lightweight/Stream.h"
#include "mrnet_lightweight/Types.h"

#endif
