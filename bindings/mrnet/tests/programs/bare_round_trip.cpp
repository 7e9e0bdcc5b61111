/*
 * The same as round_trip.cpp with sapwood.h alone, to be compared with.
 *
 *     bare_round_trip TOPOLOGY-TEXT TAG BACK-END [ARGUMENT...]
 */
#include <sapwood.h>

#include <cstdlib>

#include "turns.hpp"

namespace {

int ask(sapwood_stream_t* stream, int tag, int number, int32_t* sum, sapwood_error_t* error)
{
    sapwood_answer_t* answer = NULL;
    const sapwood_packet_t* packet = NULL;
    int code;
    if ((code = sapwood_stream_broadcast(stream, tag, error, "%d", number)) ||
        (code = sapwood_stream_recv(stream, &answer, -1, error)) ||
        (code = sapwood_answer_value(answer, &packet, error)) ||
        (code = sapwood_packet_read(packet, error, "%d", sum)))
        fprintf(stderr, "bare_round_trip: %s\n", error->text);
    sapwood_answer_free(&answer);
    return code;
}

}  // namespace

int main(int argc, char* argv[])
{
    if (argc < 4)
        return 2;
    int tag = atoi(argv[2]);
    sapwood_network_options_t options = SAPWOOD_NETWORK_OPTIONS_INIT;
    options.topology_file_text = argv[1];
    options.back_end_argv = argv + 3;
    sapwood_stream_options_t sum = SAPWOOD_STREAM_OPTIONS_INIT;
    sum.up = "sum";
    sapwood_network_t* network = NULL;
    sapwood_stream_t* stream = NULL;
    sapwood_error_t error;
    bool is_good = false;
    if (sapwood_network_open(&network, &options, &error) != SAPWOOD_OK ||
        sapwood_stream_open(&stream, network, NULL, &sum, &error) != SAPWOOD_OK) {
        fprintf(stderr, "bare_round_trip: %s\n", error.text);
    } else {
        int back_ends = int(sapwood_network_size(network));
        is_good = take_turns([&](int number) {
            int32_t total = 0;
            return ask(stream, tag, number, &total, &error) == SAPWOOD_OK && total == number * back_ends;
        });
    }
    sapwood_stream_close(&stream, NULL);
    sapwood_network_close(&network, NULL);
    return is_good ? 0 : 1;
}
