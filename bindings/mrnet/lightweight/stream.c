/*
 * Streams in C.
 */
#include <stdlib.h>

#include "state.h"

void delete_Stream_t(Stream_t *stream)
{
    if (stream == NULL)
        return;
    struct mrn_state *state = stream->network->state;
    mrn_lock(state);
    for (Stream_t **at = &stream->network->streams; *at != NULL; at = &(*at)->next) {
        if (*at == stream) {
            *at = stream->next;
            break;
        }
    }
    mrn_unlock(state);
    free(stream);
}

unsigned int Stream_get_Id(Stream_t *stream)
{
    return stream->id + USER_STREAM_BASE;
}

char Stream_is_Closed(Stream_t *stream)
{
    Network_is_ShutDown(stream->network);
    return stream->is_closed || stream->network->state->has_ended;
}

char Stream_is_ShutDown(Stream_t *stream)
{
    return Stream_is_Closed(stream);
}

int Stream_send_packet(Stream_t *stream, Packet_t *packet)
{
    sapwood_error_t error;
    struct mrn_pointers values;
    if (packet == NULL || packet->contents == NULL || stream->is_closed)
        return -1;
    if (packet->tag < FirstApplicationTag || packet->tag >= TAGS_OWN) {
        mrn_say("a tool's tags begin at FirstApplicationTag");
        return -1;
    }
    struct mrn_state *state = stream->network->state;
    mrn_point(&packet->contents->values, &values);
    mrn_lock(state);
    int code = sapwood_back_end_send_values(state->back_end, stream->id, packet->tag,
                                            packet->contents->format, values.pointers,
                                            values.count, &error);
    if (code == SAPWOOD_OK) {
        state->traffic[0] += (double)mrn_payload_bytes(&packet->contents->values);
        state->traffic[1] += 1;
    }
    mrn_unlock(state);
    if (code != SAPWOOD_OK)
        mrn_say(error.text);
    return code == SAPWOOD_OK ? 0 : -1;
}

int Stream_send(Stream_t *stream, int tag, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    Packet_t *packet = new_Packet_t(stream->network->local_rank, Stream_get_Id(stream), tag,
                                    format, values);
    va_end(values);
    int result = Stream_send_packet(stream, packet);
    delete_Packet_t(packet);
    return result;
}

int Stream_flush(Stream_t *stream)
{
    struct mrn_state *state = stream->network->state;
    mrn_lock(state);
    int code = sapwood_back_end_flush(state->back_end, NULL);
    mrn_unlock(state);
    return code == SAPWOOD_OK ? 0 : -1;
}

int Stream_recv(Stream_t *stream, int *tag, Packet_t *packet, bool_t blocking)
{
    return mrn_recv(stream->network, stream->id, tag, packet, NULL, blocking);
}
