/* death BACK_END: a back-end that ends is named in the answer that lacks it, and in an event. */
#include "check.h"

static sapwood_error_t error;

static void check_missing(const sapwood_answer_t *answer)
{
    size_t count = 0;
    const sapwood_missing_t *missing = sapwood_answer_missing(answer, &count);
    CHECK(count == 1 && strcmp(missing[0].ranks, "2") == 0 && strlen(missing[0].reason) > 0);
    CHECK(missing[0].cause == SAPWOOD_CAUSE_EXITED && missing[0].cause_detail == 3);
    CHECK(missing[0].range_count == 1 && missing[0].ranges[0].first == 2);
    CHECK(!sapwood_answer_is_complete(answer));
    CHECK(sapwood_answer_contributor_count(answer) == 3);
    printf("missing %s: %s\n", missing[0].ranks, missing[0].reason);
}

static void check_event(sapwood_network_t *network)
{
    sapwood_event_t event;
    do {
        OK(sapwood_network_next_event(network, &event, &error));
        CHECK(event.kind != SAPWOOD_EVENT_NONE);
    } while (event.kind != SAPWOOD_EVENT_LOST);
    CHECK(strcmp(event.ranks, "2") == 0 && strlen(event.text) > 0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    sapwood_network_options_t options = SAPWOOD_NETWORK_OPTIONS_INIT;
    sapwood_stream_options_t stream_options = SAPWOOD_STREAM_OPTIONS_INIT;
    sapwood_network_t *network = NULL;
    sapwood_stream_t *everyone = NULL, *victim = NULL;
    sapwood_communicator_t *second = NULL;
    sapwood_answer_t *answer = NULL;
    const sapwood_packet_t *packet = NULL;
    int32_t sum = 0;
    options.topology = "2x2";
    options.back_end_argv = (const char *const *)argv + 1;
    stream_options.up = "sum";
    OK(sapwood_network_open(&network, &options, &error));
    OK(sapwood_stream_open(&everyone, network, NULL, &stream_options, &error));
    OK(sapwood_communicator_parse(&second, "2", &error));
    OK(sapwood_stream_open(&victim, network, second, NULL, &error));
    OK(sapwood_stream_broadcast(everyone, TAG_END, &error, "%d", 2));
    OK(sapwood_stream_recv(everyone, &answer, HANG_MS, &error));
    check_missing(answer);
    OK(sapwood_answer_value(answer, &packet, &error));
    OK(sapwood_packet_read(packet, &error, "%d", &sum));
    CHECK(sum == 3);
    sapwood_answer_free(&answer);
    check_event(network);
    REFUSED(sapwood_stream_recv(victim, &answer, HANG_MS, &error), NO_MEMBER_LEFT, "2: ");
    CHECK(answer == NULL);
    sapwood_communicator_free(&second);
    /* The network may go before its streams. */
    OK(sapwood_network_close(&network, &error));
    CHECK(sapwood_stream_recv(everyone, &answer, 0, &error) != 0);
    OK(sapwood_stream_close(&everyone, &error));
    OK(sapwood_stream_close(&victim, &error));
    return 0;
}
