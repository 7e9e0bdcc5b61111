/*
 * What networks and packets hold behind their visible fields.
 */
#ifndef MRNET_LIGHTWEIGHT_STATE_H
#define MRNET_LIGHTWEIGHT_STATE_H

#include <pthread.h>

#include "mrnet_lightweight/MRNet.h"
#include "values.h"

/* Tags of the layer's own packets, as in src/engine.hpp. */
#define TAG_HELLO (INT32_MAX - 4)
#define TAG_USAGE (INT32_MAX - 3)
#define TAG_PARAMETERS (INT32_MAX - 2)
#define TAG_FILTERS_ARE (INT32_MAX - 1)
#define TAGS_OWN TAG_HELLO

/* The number that C++ adds to a stream's own. */
#define USER_STREAM_BASE ((1u << 30) + 10)

struct mrn_contents {
    struct mrn_values values;
    sapwood_packet_t *packet;
    char *format;
    bool_t destroys;
    /* The caller's packet that was filled with this, in the list of its network. */
    Packet_t *holder;
    struct mrn_contents *next;
    struct mrn_contents **before;
};

/* A packet that has arrived and was not taken yet. */
struct mrn_arrival {
    sapwood_packet_t *packet;
    struct mrn_arrival *next;
};

struct mrn_state {
    sapwood_back_end_t *back_end;
    struct mrn_arrival *first, **last;
    struct mrn_contents *filled;
    Rank parent, front_end;
    Rank real_rank;
    uint32_t direct_stream;
    bool_t is_started, has_ended;
    pthread_mutex_t mutex;
    /* What has gone over all streams. */
    double traffic[4];
};

/* Frees what a packet holds. */
void mrn_release(struct mrn_contents *contents);
/* Fills a caller's packet with one that has come; -1 if it cannot be read. */
int mrn_fill(Network_t *net, Packet_t *to, sapwood_packet_t *packet, unsigned int shown_stream);
/* Takes a packet of one stream, or of any for 0; waits if asked. */
int mrn_recv(Network_t *net, uint32_t only, int *tag, Packet_t *packet, Stream_t **stream,
             int is_blocking);
void mrn_lock(struct mrn_state *state);
void mrn_unlock(struct mrn_state *state);
/* The stream of the library's number, made if it is not known. With the lock held. */
Stream_t *mrn_stream(Network_t *net, uint32_t id);
void mrn_say(const char *text);
NetworkTopology_t *mrn_new_topology(void);
void mrn_delete_topology(NetworkTopology_t *topology);
/* 0, or -1 where there is no memory. */
int mrn_add_node(NetworkTopology_t *topology, const char *host, Rank rank, Rank parent, int is_back_end);

#endif
