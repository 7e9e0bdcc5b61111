/*
 * loops BACK_END FAULTS MEAN: filters in WebAssembly that turn a loop many times, at the tool itself and at
 * communication processes. FAULTS is faults.wasm, whose filter `loop` never comes back, MEAN is mean.wasm. The
 * back-ends are back_end.
 */
#include "check.h"

static sapwood_network_t *network;
static sapwood_error_t error;

static sapwood_stream_t *open_stream(const char *file, const char *filter)
{
    char name[4096];
    sapwood_stream_options_t options = SAPWOOD_STREAM_OPTIONS_INIT;
    sapwood_stream_t *stream = NULL;
    CHECK(snprintf(name, sizeof name, "wasm:%s#%s", file, filter) < (int)sizeof name);
    options.up = name;
    OK(sapwood_stream_open(&stream, network, NULL, &options, &error));
    return stream;
}

/* The steps of a call are counted, so that one without an end costs its wave and no more. On a machine
 * that is busy it may be given up for its time before it has made them. */
static void check_endless(const char *file)
{
    sapwood_stream_t *stream = open_stream(file, "loop");
    sapwood_answer_t *answer = NULL;
    const sapwood_packet_t *packet = NULL;
    OK(sapwood_stream_broadcast(stream, TAG_SERIES, &error, "%d", 3000));
    OK(sapwood_stream_recv(stream, &answer, HANG_MS, &error));
    REFUSED(sapwood_answer_value(answer, &packet, &error), NO_VALUE, "loop'");
    sapwood_answer_free(&answer);
    OK(sapwood_stream_close(&stream, &error));
}

/* The project's own mean over arrays of this length; all back-ends send the same. */
static void check_mean(const char *file, int32_t count, uint64_t back_ends)
{
    sapwood_stream_t *stream = open_stream(file, "mean");
    sapwood_answer_t *answer = NULL;
    const sapwood_packet_t *packet = NULL;
    const double *means = NULL;
    uint64_t of = 0;
    uint32_t length = 0;
    OK(sapwood_stream_broadcast(stream, TAG_SERIES, &error, "%d", count));
    OK(sapwood_stream_recv(stream, &answer, HANG_MS, &error));
    OK(sapwood_answer_value(answer, &packet, &error));
    OK(sapwood_packet_read(packet, &error, "%uld %alf", &of, &means, &length));
    CHECK(sapwood_answer_is_complete(answer) && of == back_ends && (int32_t)length == count);
    for (int32_t at = 0; at < count; at++)
        CHECK(means[at] == at);
    sapwood_answer_free(&answer);
    OK(sapwood_stream_close(&stream, &error));
}

int main(int argc, char **argv)
{
    static const char *const topologies[] = {"2", "2x2"};
    CHECK(argc == 4);
    const char *const back_end[] = {argv[1], NULL};
    for (uint64_t at = 0; at < 2; at++) {
        sapwood_network_options_t options = SAPWOOD_NETWORK_OPTIONS_INIT;
        options.topology = topologies[at];
        options.back_end_argv = back_end;
        OK(sapwood_network_open(&network, &options, &error));
        check_mean(argv[3], 3000, 2 + 2 * at);
        check_endless(argv[2]);
        check_mean(argv[3], 30000, 2 + 2 * at);
        OK(sapwood_network_close(&network, &error));
    }
    return 0;
}
