/*
 * The same as round_trip.cpp with sapwood.h alone, to be compared with.
 *
 *     bare_round_trip TOPOLOGY BACK-END [ROUNDS]
 */
#include <sapwood.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "protocol.h"

int main(int argc, char* argv[])
{
    const int rounds = argc > 3 ? atoi(argv[3]) : 1000, warm_up = rounds / 10 + 1;
    if (argc < 3)
        return 2;
    std::ostringstream text;
    text << std::ifstream(argv[1]).rdbuf();
    std::string topology = text.str();
    const char* const words[] = {argv[2], NULL};
    sapwood_network_options_t options = SAPWOOD_NETWORK_OPTIONS_INIT;
    options.topology_file_text = topology.c_str();
    options.back_end_argv = words;
    sapwood_stream_options_t sum = SAPWOOD_STREAM_OPTIONS_INIT;
    sum.up = "sum";
    sapwood_network_t* network = NULL;
    sapwood_stream_t* stream = NULL;
    sapwood_error_t error;
    std::vector<double> times;
    int code = sapwood_network_open(&network, &options, &error);
    if (code == SAPWOOD_OK)
        code = sapwood_stream_open(&stream, network, NULL, &sum, &error);
    int back_ends = int(sapwood_network_size(network));
    for (int round = -warm_up; code == SAPWOOD_OK && round < rounds; round++) {
        auto before = std::chrono::steady_clock::now();
        sapwood_answer_t* answer = NULL;
        const sapwood_packet_t* packet = NULL;
        int32_t total = 0;
        if ((code = sapwood_stream_broadcast(stream, TAG_SUM, &error, "%d", round)) ||
            (code = sapwood_stream_recv(stream, &answer, -1, &error)) ||
            (code = sapwood_answer_value(answer, &packet, &error)) ||
            (code = sapwood_packet_read(packet, &error, "%d", &total)))
            break;
        sapwood_answer_free(&answer);
        std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - before;
        if (total != round * back_ends)
            return 1;
        if (round >= 0)
            times.push_back(time.count());
    }
    sapwood_stream_close(&stream, NULL);
    sapwood_network_close(&network, NULL);
    if (code != SAPWOOD_OK) {
        fprintf(stderr, "bare_round_trip: %s\n", error.text);
        return 1;
    }
    std::sort(times.begin(), times.end());
    printf("{\"layer\": \"sapwood\", \"back_ends\": %d, \"rounds\": %d, \"median_us\": %.2f}\n",
           back_ends, rounds, times[times.size() / 2]);
    return 0;
}
