/*
 * Packets. One that is received is filled by the network, into memory of the caller's.
 */
#ifndef MRNET_LIGHTWEIGHT_PACKET_H
#define MRNET_LIGHTWEIGHT_PACKET_H

#include <stdarg.h>

#include "mrnet_lightweight/Types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct mrn_contents;

typedef struct {
    unsigned int stream_id;
    int tag;
    Rank src_rank;
    char *fmt_str;
    struct mrn_contents *contents;
} Packet_t;

/* NULL for a format that is none. Arrays are not copied: they are there until the packet is sent. */
Packet_t *new_Packet_t(Rank rank, unsigned int stream_id, int tag, const char *format,
                       va_list values);
Packet_t *new_Packet_t_2(unsigned int stream_id, int tag, const char *format, ...);
void delete_Packet_t(Packet_t *packet);

int Packet_get_Tag(Packet_t *packet);
void Packet_set_Tag(Packet_t *packet, int tag);
unsigned int Packet_get_StreamId(Packet_t *packet);
void Packet_set_StreamId(Packet_t *packet, unsigned int stream_id);
char *Packet_get_FormatString(Packet_t *packet);
/* Arrays and strings are copies for the caller to free. 0, or -1 for another format. */
int Packet_unpack(Packet_t *packet, const char *format, ...);
int Packet_unpack_valist(Packet_t *packet, va_list places, const char *format);
void Packet_set_DestroyData(Packet_t *packet, bool_t destroy);

#ifdef __cplusplus
}
#endif

#endif
