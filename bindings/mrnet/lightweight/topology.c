/*
 * The tree in C, at a back-end: as it was planned.
 */
#include <stdlib.h>
#include <string.h>

#include "state.h"

NetworkTopology_t *mrn_new_topology(void)
{
    return calloc(1, sizeof(NetworkTopology_t));
}

void mrn_delete_topology(NetworkTopology_t *topology)
{
    if (topology == NULL)
        return;
    for (unsigned int at = 0; at < topology->num_nodes; at++)
        free(topology->nodes[at].hostname);
    free(topology->nodes);
    free(topology);
}

int mrn_add_node(NetworkTopology_t *topology, const char *host, Rank rank, Rank parent, int is_back_end)
{
    size_t bytes = (topology->num_nodes + 1) * sizeof(Node_t);
    Node_t *nodes = realloc(topology->nodes, bytes);
    if (nodes == NULL)
        return -1;
    topology->nodes = nodes;
    Node_t *node = &nodes[topology->num_nodes];
    *node = (Node_t){strdup(host), 0, rank, parent, is_back_end, topology};
    if (node->hostname == NULL)
        return -1;
    topology->num_nodes++;
    topology->num_back_ends += is_back_end != 0;
    if (parent == UnknownRank)
        topology->root = rank;
    return 0;
}

unsigned int NetworkTopology_get_NumNodes(NetworkTopology_t *topology)
{
    return topology->num_nodes;
}

Node_t *NetworkTopology_get_Root(NetworkTopology_t *topology)
{
    return NetworkTopology_find_Node(topology, topology->root);
}

Node_t *NetworkTopology_find_Node(NetworkTopology_t *topology, Rank rank)
{
    for (unsigned int at = 0; at < topology->num_nodes; at++)
        if (topology->nodes[at].rank == rank)
            return &topology->nodes[at];
    return NULL;
}

char *NetworkTopology_Node_get_HostName(Node_t *node)
{
    return node->hostname;
}

Port NetworkTopology_Node_get_Port(Node_t *node)
{
    return node->port;
}

Rank NetworkTopology_Node_get_Rank(Node_t *node)
{
    return node->rank;
}

Rank NetworkTopology_Node_get_Parent(Node_t *node)
{
    return node->parent;
}

/* Links on the longest way down, counted from every node upwards. */
unsigned int NetworkTopology_Node_find_SubTreeHeight(Node_t *node)
{
    NetworkTopology_t *topology = node->topology;
    unsigned int height = 0;
    for (unsigned int at = 0; at < topology->num_nodes; at++) {
        unsigned int steps = 0;
        Node_t *above = &topology->nodes[at];
        while (above != NULL && above->rank != node->rank && steps < topology->num_nodes) {
            above = NetworkTopology_find_Node(topology, above->parent);
            steps++;
        }
        if (above != NULL && above->rank == node->rank && steps > height)
            height = steps;
    }
    return height;
}
