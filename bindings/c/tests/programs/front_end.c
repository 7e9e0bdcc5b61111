/*
 * front_end TOPOLOGY TRANSPORT BACK_END [ARGUMENT...]: every directive both ways, reductions, single
 * members, and the answers' contributors.
 *
 * front_end TOPOLOGY TRANSPORT attach FOLDER COUNT: the same with COUNT back-ends that attach by
 * themselves, as FOLDER/points says.
 */
#include "every_directive.h"

#include <poll.h>

static sapwood_network_t *network;
static sapwood_error_t error;
static uint64_t size;

static sapwood_answer_t *answer_of(sapwood_stream_t *stream)
{
    sapwood_answer_t *answer = NULL;
    OK(sapwood_stream_recv(stream, &answer, HANG_MS, &error));
    return answer;
}

static const sapwood_packet_t *value_of(const sapwood_answer_t *answer)
{
    const sapwood_packet_t *packet = NULL;
    OK(sapwood_answer_value(answer, &packet, &error));
    return packet;
}

/* Without a filter, each back-end's packet is an answer of its own. */
static void every_directive_both_ways(void)
{
    sapwood_stream_options_t options = SAPWOOD_STREAM_OPTIONS_INIT;
    sapwood_stream_t *stream = NULL;
    struct every mine;
    options.wave = SAPWOOD_WAVE_IMMEDIATE;
    OK(sapwood_stream_open(&stream, network, NULL, &options, &error));
    fill(&mine, 7);
    OK(sapwood_stream_broadcast(stream, TAG_ALL, &error, EVERY_DIRECTIVE, EVERY(&mine)));
    uint64_t seen = 0;
    for (uint64_t i = 0; i < size; i++) {
        sapwood_answer_t *answer = answer_of(stream);
        const sapwood_packet_t *packet = value_of(answer);
        size_t count = 0;
        const sapwood_rank_range_t *ranges = sapwood_answer_contributors(answer, &count);
        CHECK(count == 1 && ranges[0].first == ranges[0].last);
        CHECK(sapwood_packet_origin(packet) == ranges[0].first);
        check_every(packet, ranges[0].first);
        seen += ranges[0].first;
        sapwood_answer_free(&answer);
    }
    CHECK(seen == size * (size - 1) / 2);
    OK(sapwood_stream_close(&stream, &error));
}

static void a_sum_over_everyone(void)
{
    sapwood_stream_options_t options = SAPWOOD_STREAM_OPTIONS_INIT;
    sapwood_stream_t *stream = NULL;
    options.up = "sum";
    OK(sapwood_stream_open(&stream, network, NULL, &options, &error));
    for (int32_t wave = 0; wave < 3; wave++) {
        int32_t sum = 0;
        OK(sapwood_stream_broadcast(stream, TAG_RANK, &error, "%d", wave));
        sapwood_answer_t *answer = answer_of(stream);
        OK(sapwood_packet_read(value_of(answer), &error, "%d", &sum));
        CHECK(sum == (int32_t)(size * (size - 1) / 2) + wave * (int32_t)size);
        CHECK(sapwood_answer_wave(answer) == (uint64_t)wave);
        CHECK(sapwood_answer_is_complete(answer) && !sapwood_answer_is_late(answer));
        CHECK(sapwood_answer_contributor_count(answer) == size);
        CHECK(sapwood_answer_stream(answer) == sapwood_stream_id(stream));
        size_t missing = 9;
        CHECK(sapwood_answer_missing(answer, &missing) == NULL && missing == 0);
        sapwood_answer_free(&answer);
    }
    CHECK(sapwood_stream_dropped(stream) == 0);
    OK(sapwood_stream_close(&stream, &error));
}

/* Sends one number to a communicator's back-ends. */
static int send_some(sapwood_stream_t *stream, const sapwood_communicator_t *to, int32_t number)
{
    const void *values[] = {&number};
    return sapwood_stream_send_to_some_values(stream, to, TAG_RANK, "%d", values, 1, &error);
}

/* NULL is all members, an empty communicator none: the next answer is that to the next packet. */
static void all_some_and_none(sapwood_stream_t *stream, uint32_t last)
{
    sapwood_communicator_t *none = NULL, *some = NULL, *stranger = NULL;
    uint32_t outside = last + 1;
    OK(sapwood_communicator_of_ranks(&none, NULL, 0, &error));
    OK(sapwood_communicator_of_ranks(&some, &last, 1, &error));
    OK(sapwood_communicator_of_ranks(&stranger, &outside, 1, &error));
    for (int32_t number = 1; number <= 2; number++) {
        int32_t value = 0;
        OK(send_some(stream, none, 3000));
        OK(send_some(stream, number == 1 ? some : NULL, number));
        sapwood_answer_t *answer = answer_of(stream);
        OK(sapwood_packet_read(value_of(answer), &error, "%d", &value));
        CHECK(value == number + (int32_t)last);
        sapwood_answer_free(&answer);
    }
    CHECK(send_some(stream, stranger, 1) == SAPWOOD_ERROR_USAGE);
    sapwood_communicator_free(&none);
    sapwood_communicator_free(&some);
    sapwood_communicator_free(&stranger);
}

/* The last member alone, waited for with poll. */
static void one_member(void)
{
    sapwood_communicator_t *members = NULL;
    sapwood_stream_t *stream = NULL;
    sapwood_answer_t *answer = NULL;
    uint32_t last = (uint32_t)size - 1;
    int32_t value = 0;
    size_t count = 0;
    OK(sapwood_communicator_of_ranks(&members, &last, 1, &error));
    CHECK(sapwood_communicator_size(members) == 1);
    CHECK(sapwood_communicator_ranges(members, &count)->last == last && count == 1);
    OK(sapwood_stream_open(&stream, network, members, NULL, &error));
    sapwood_communicator_free(&members);
    OK(sapwood_stream_send_to(stream, last, TAG_RANK, &error, "%d", 1000));
    OK(sapwood_network_flush(network, &error));
    struct pollfd descriptor = {sapwood_network_descriptor(network), POLLIN, 0};
    while (!answer) {
        OK(sapwood_stream_try_recv(stream, &answer, &error));
        CHECK(answer || poll(&descriptor, 1, HANG_MS) == 1);
    }
    OK(sapwood_packet_read(value_of(answer), &error, "%d", &value));
    CHECK(value == 1000 + (int32_t)last);
    sapwood_answer_free(&answer);
    all_some_and_none(stream, last);
    OK(sapwood_stream_close(&stream, &error));
}

static int transport_of(const char *name)
{
    return strcmp(name, "tcp") == 0 ? SAPWOOD_TRANSPORT_TCP : SAPWOOD_TRANSPORT_UNIX;
}

/* The file appears under its name when it is whole. */
static void wait_for_attached(const char *folder, const char *count)
{
    char part[256], whole[256], key[256];
    snprintf(part, sizeof part, "%s/part", folder);
    snprintf(whole, sizeof whole, "%s/points", folder);
    snprintf(key, sizeof key, "%s/key", folder);
    OK(sapwood_network_write_attach_file(network, part, key, &error));
    CHECK(rename(part, whole) == 0);
    OK(sapwood_network_wait_for_back_ends(network, (uint64_t)atoi(count), HANG_MS, &error));
}

int main(int argc, char **argv)
{
    CHECK(argc >= 4);
    int is_attaching = strcmp(argv[3], "attach") == 0;
    sapwood_network_options_t options = SAPWOOD_NETWORK_OPTIONS_INIT;
    options.topology = argv[1];
    options.transport = transport_of(argv[2]);
    if (!is_attaching)
        options.back_end_argv = (const char *const *)argv + 3;
    options.startup_timeout_ms = HANG_MS;
    OK(sapwood_network_open(&network, &options, &error));
    if (is_attaching)
        wait_for_attached(argv[4], argv[5]);
    size = sapwood_network_size(network);
    CHECK(size >= 1);
    sapwood_communicator_t *everyone = NULL;
    OK(sapwood_communicator_everyone(&everyone, network, &error));
    CHECK(sapwood_communicator_size(everyone) == size);
    sapwood_communicator_free(&everyone);
    every_directive_both_ways();
    a_sum_over_everyone();
    one_member();
    OK(sapwood_network_close(&network, &error));
    OK(sapwood_network_close(&network, &error));
    CHECK(network == NULL);
    printf("%s: %u back-ends\n", argv[1], (unsigned)size);
    return 0;
}
