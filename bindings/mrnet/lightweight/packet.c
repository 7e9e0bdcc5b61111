/*
 * Packets in C: values that a tool gave, or that have come and are read where they lie.
 */
#include <stdlib.h>
#include <string.h>

#include "state.h"

void mrn_release(struct mrn_contents *contents)
{
    if (contents == NULL)
        return;
    if (contents->before != NULL) {
        *contents->before = contents->next;
        if (contents->next != NULL)
            contents->next->before = contents->before;
    }
    mrn_free(&contents->values, contents->destroys && contents->packet == NULL);
    sapwood_packet_free(&contents->packet);
    free(contents->format);
    free(contents);
}

/* A packet of the caller's may be filled again and again, and need not be cleared before. */
static void forget(Network_t *net, const Packet_t *holder)
{
    struct mrn_contents *at = net->state->filled;
    while (at != NULL) {
        struct mrn_contents *next = at->next;
        if (at->holder == holder)
            mrn_release(at);
        at = next;
    }
}

int mrn_fill(Network_t *net, Packet_t *to, sapwood_packet_t *packet, unsigned int shown_stream)
{
    sapwood_error_t error;
    struct mrn_contents *contents = calloc(1, sizeof *contents);
    forget(net, to);
    memset(to, 0, sizeof *to);
    if (contents == NULL || mrn_read(&contents->values, packet, &error) != SAPWOOD_OK) {
        free(contents);
        sapwood_packet_free(&packet);
        return -1;
    }
    contents->packet = packet;
    contents->format = strdup(sapwood_packet_format(packet));
    contents->holder = to;
    contents->next = net->state->filled;
    contents->before = &net->state->filled;
    if (contents->next != NULL)
        contents->next->before = &contents->next;
    net->state->filled = contents;
    to->stream_id = shown_stream;
    to->tag = sapwood_packet_tag(packet);
    to->src_rank = sapwood_packet_origin(packet);
    to->fmt_str = contents->format;
    to->contents = contents;
    return 1;
}

Packet_t *new_Packet_t(Rank rank, unsigned int stream_id, int tag, const char *format,
                       va_list values)
{
    sapwood_error_t error;
    Packet_t *packet = calloc(1, sizeof *packet);
    struct mrn_contents *contents = calloc(1, sizeof *contents);
    if (packet == NULL || contents == NULL ||
        mrn_take(&contents->values, format, values, &error) != SAPWOOD_OK) {
        if (packet != NULL && contents != NULL)
            mrn_say(error.text);
        free(packet);
        free(contents);
        return NULL;
    }
    contents->format = strdup(format == NULL ? "" : format);
    packet->stream_id = stream_id;
    packet->tag = tag;
    packet->src_rank = rank;
    packet->fmt_str = contents->format;
    packet->contents = contents;
    return packet;
}

Packet_t *new_Packet_t_2(unsigned int stream_id, int tag, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    Packet_t *packet = new_Packet_t(UnknownRank, stream_id, tag, format, values);
    va_end(values);
    return packet;
}

void delete_Packet_t(Packet_t *packet)
{
    if (packet == NULL)
        return;
    mrn_release(packet->contents);
    free(packet);
}

int Packet_get_Tag(Packet_t *packet)
{
    return packet->tag;
}

void Packet_set_Tag(Packet_t *packet, int tag)
{
    packet->tag = tag;
}

unsigned int Packet_get_StreamId(Packet_t *packet)
{
    return packet->stream_id;
}

void Packet_set_StreamId(Packet_t *packet, unsigned int stream_id)
{
    packet->stream_id = stream_id;
}

char *Packet_get_FormatString(Packet_t *packet)
{
    return packet->fmt_str;
}

int Packet_unpack_valist(Packet_t *packet, va_list places, const char *format)
{
    sapwood_error_t error;
    if (packet == NULL || packet->contents == NULL)
        return -1;
    if (mrn_unpack(&packet->contents->values, format, places, 0, &error) == SAPWOOD_OK)
        return 0;
    mrn_say(error.text);
    return -1;
}

int Packet_unpack(Packet_t *packet, const char *format, ...)
{
    va_list places;
    va_start(places, format);
    int result = Packet_unpack_valist(packet, places, format);
    va_end(places);
    return result;
}

void Packet_set_DestroyData(Packet_t *packet, bool_t destroy)
{
    if (packet->contents != NULL)
        packet->contents->destroys = destroy;
}
