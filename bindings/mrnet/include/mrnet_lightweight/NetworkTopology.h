/*
 * What a back-end knows of the tree: as it was planned.
 */
#ifndef MRNET_LIGHTWEIGHT_NETWORKTOPOLOGY_H
#define MRNET_LIGHTWEIGHT_NETWORKTOPOLOGY_H

#include "mrnet_lightweight/Types.h"

typedef struct {
    unsigned int num_nodes;
    unsigned int num_back_ends;
    Rank root;
    Rank parent;
    Rank rank;
} NetworkTopology_t;

#endif
