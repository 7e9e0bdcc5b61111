/*
 * Streams, at a back-end.
 */
#ifndef MRNET_LIGHTWEIGHT_STREAM_H
#define MRNET_LIGHTWEIGHT_STREAM_H

#include "mrnet_lightweight/Packet.h"
#include "mrnet_lightweight/Types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct Network_s;

typedef struct Stream_s {
    struct Network_s *network;
    unsigned int id;
    /* Numbers of the filters that the front-end has given this process: of synchronisation, upward, downward. */
    unsigned int sync_filter_id;
    unsigned int us_filter_id;
    unsigned int ds_filter_id;
    bool_t is_closed;
    struct Stream_s *next;
} Stream_t;

void delete_Stream_t(Stream_t *stream);
unsigned int Stream_get_Id(Stream_t *stream);
char Stream_is_Closed(Stream_t *stream);
char Stream_is_ShutDown(Stream_t *stream);
/* 0, or -1. */
int Stream_send(Stream_t *stream, int tag, const char *format, ...);
int Stream_send_packet(Stream_t *stream, Packet_t *packet);
int Stream_flush(Stream_t *stream);
/* 1 for a packet, 0 for none, -1. */
int Stream_recv(Stream_t *stream, int *tag, Packet_t *packet, bool_t blocking);

#ifdef __cplusplus
}
#endif

#endif
