/*
 * What a back-end knows of the tree: as it was planned.
 */
#ifndef MRNET_LIGHTWEIGHT_NETWORKTOPOLOGY_H
#define MRNET_LIGHTWEIGHT_NETWORKTOPOLOGY_H

#include "mrnet_lightweight/Types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct NetworkTopology_s;

typedef struct {
    char *hostname;
    Port port;
    Rank rank;
    Rank parent;
    int is_backend;
    struct NetworkTopology_s *topology;
} Node_t;

typedef struct NetworkTopology_s {
    unsigned int num_nodes;
    unsigned int num_back_ends;
    Rank root;
    Rank parent;
    Rank rank;
    Node_t *nodes;
} NetworkTopology_t;

unsigned int NetworkTopology_get_NumNodes(NetworkTopology_t *topology);
Node_t *NetworkTopology_get_Root(NetworkTopology_t *topology);
/* NULL for a rank that is not there. */
Node_t *NetworkTopology_find_Node(NetworkTopology_t *topology, Rank rank);

char *NetworkTopology_Node_get_HostName(Node_t *node);
Port NetworkTopology_Node_get_Port(Node_t *node);
Rank NetworkTopology_Node_get_Rank(Node_t *node);
/* UnknownRank for the front-end. */
Rank NetworkTopology_Node_get_Parent(Node_t *node);
unsigned int NetworkTopology_Node_find_SubTreeHeight(Node_t *node);

#ifdef __cplusplus
}
#endif

#endif
