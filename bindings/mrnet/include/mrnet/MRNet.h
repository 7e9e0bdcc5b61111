/*
 * The whole interface of MRNet 5.0.1 under its own names, carried out by Sapwood.
 *
 * README.md beside the sources says what differs.
 */
#ifndef MRNET_MRNET_H
#define MRNET_MRNET_H

#include "mrnet/CommunicationNode.h"
#include "mrnet/Communicator.h"
#include "mrnet/DataElement.h"
#include "mrnet/Error.h"
#include "mrnet/Event.h"
#include "mrnet/FilterIds.h"
#include "mrnet/Network.h"
#include "mrnet/NetworkTopology.h"
#include "mrnet/Packet.h"
#include "mrnet/Stream.h"
#include "mrnet/Tree.h"
#include "mrnet/Types.h"

#endif
