/*
 * A network, at a back-end.
 */
#ifndef MRNET_LIGHTWEIGHT_NETWORK_H
#define MRNET_LIGHTWEIGHT_NETWORK_H

#include "mrnet_lightweight/NetworkTopology.h"
#include "mrnet_lightweight/Packet.h"
#include "mrnet_lightweight/Stream.h"
#include "mrnet_lightweight/Types.h"
#include "xplat_lightweight/Monitor.h"
#include "xplat_lightweight/SocketUtils.h"

#ifdef __cplusplus
extern "C" {
#endif

struct mrn_state;

typedef struct Network_s {
    char *local_hostname;
    Port local_port;
    Rank local_rank;
    NetworkTopology_t *network_topology;
    Stream_t *streams;
    struct mrn_state *state;
} Network_t;

/* Joins by the last five arguments; NULL where there are none, or the parent does not answer. */
Network_t *Network_CreateNetworkBE(int argc, char *argv[]);
void delete_Network_t(Network_t *net);

char *Network_get_LocalHostName(Network_t *net);
Port Network_get_LocalPort(Network_t *net);
Rank Network_get_LocalRank(Network_t *net);
NetworkTopology_t *Network_get_NetworkTopology(Network_t *net);
char Network_is_ShutDown(Network_t *net);
void Network_waitfor_ShutDown(Network_t *net);

/* 1 for a packet, 0 for none, -1 when none can come any more. */
int Network_recv(Network_t *net, int *tag, Packet_t *packet, Stream_t **stream);
int Network_recv_nonblock(Network_t *net, int *tag, Packet_t *packet, Stream_t **stream);
Stream_t *Network_get_Stream(Network_t *net, unsigned int id);
/* The stream of that number as it is known here; filters are the front-end's to choose. */
Stream_t *Network_new_Stream(Network_t *net, unsigned int id, Rank *back_ends,
                             unsigned int back_end_count, int up, int sync, int down);
void Network_delete_Stream(Network_t *net, unsigned int id);

void Network_set_OutputLevel(int level);
void Network_set_DebugLogDir(char *folder);

#ifdef __cplusplus
}
#endif

#endif
