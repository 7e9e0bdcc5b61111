/*
 * The back-end of bare_round_trip.cpp.
 */
#include <sapwood.h>

#include <cstdio>

int main()
{
    sapwood_back_end_t* back_end = NULL;
    sapwood_packet_t* packet = NULL;
    sapwood_error_t error;
    int code = sapwood_back_end_attach(&back_end, &error);
    while (code == SAPWOOD_OK &&
           (code = sapwood_back_end_recv(back_end, &packet, -1, &error)) == SAPWOOD_OK) {
        int32_t number = 0;
        code = sapwood_packet_read(packet, &error, "%d", &number);
        if (code == SAPWOOD_OK)
            code = sapwood_back_end_send(back_end, sapwood_packet_stream(packet),
                                         sapwood_packet_tag(packet), &error, "%d", number);
        sapwood_packet_free(&packet);
    }
    if (code != SAPWOOD_ERROR_ENDED)
        fprintf(stderr, "bare_back_end: %s\n", error.text);
    sapwood_back_end_close(&back_end, NULL);
    return code != SAPWOOD_ERROR_ENDED;
}
