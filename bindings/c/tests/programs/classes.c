/*
 * classes TOPOLOGY BACK_END: equal answers are folded by the filter that is called `classes`, here and in communication
 * processes alike: those of the library's program, and this program, which has `number-classes` besides.
 */
#include "check.h"

static sapwood_network_t *network;
static sapwood_error_t error;

/* Asks the back-ends once over a filter; the packet belongs to the answer. */
static const sapwood_packet_t *ask(const char *filter, int tag, sapwood_stream_t **stream, sapwood_answer_t **answer)
{
    sapwood_stream_options_t options = SAPWOOD_STREAM_OPTIONS_INIT;
    const sapwood_packet_t *packet = NULL;
    options.up = filter;
    OK(sapwood_stream_open(stream, network, NULL, &options, &error));
    OK(sapwood_stream_broadcast(*stream, tag, &error, "%d", 0));
    OK(sapwood_stream_recv(*stream, answer, HANG_MS, &error));
    OK(sapwood_answer_value(*answer, &packet, &error));
    CHECK(sapwood_answer_is_complete(*answer));
    return packet;
}

static void done(sapwood_stream_t **stream, sapwood_answer_t **answer)
{
    sapwood_answer_free(answer);
    OK(sapwood_stream_close(stream, &error));
}

/* Ranks with an even number send "even", all others "odd", each with the same word. */
static void texts_by_classes(uint32_t size)
{
    sapwood_stream_t *stream = NULL;
    sapwood_answer_t *answer = NULL;
    const sapwood_packet_t *packet = ask("classes", TAG_CLASSES, &stream, &answer);
    const uint32_t *counts = NULL, *ranges = NULL;
    const char *const *keys = NULL, *const *contents = NULL;
    uint32_t classes = 0, bounds = 0, key_count = 0, content_count = 0;
    OK(sapwood_packet_read(packet, &error, "%aud %aud %as %as", &counts, &classes, &ranges, &bounds, &keys, &key_count,
                           &contents, &content_count));
    CHECK(classes == 2 && key_count == 2 && content_count == 2);
    CHECK(strcmp(keys[0], "even") == 0 && strcmp(keys[1], "odd") == 0);
    CHECK(strcmp(contents[0], "word") == 0 && strcmp(contents[1], "word") == 0);
    CHECK(counts[0] == size / 2 && counts[1] == size / 2 && bounds == 2 * size);
    for (uint32_t at = 0; at < size; at++) {
        uint32_t rank = at < size / 2 ? 2 * at : 2 * (at - size / 2) + 1;
        CHECK(ranges[2 * at] == rank && ranges[2 * at + 1] == rank);
    }
    done(&stream, &answer);
}

/* Each rank sends one class with itself: whether its rank is odd. */
static void numbers_by_number_classes(uint32_t size)
{
    sapwood_stream_t *stream = NULL;
    sapwood_answer_t *answer = NULL;
    const sapwood_packet_t *packet = ask("number-classes", TAG_NUMBER_CLASSES, &stream, &answer);
    const uint32_t *values = NULL, *sizes = NULL, *members = NULL;
    uint32_t value_count = 0, size_count = 0, member_count = 0, sum = 0;
    OK(sapwood_packet_read(packet, &error, "%aud %aud %aud", &values, &value_count, &sizes, &size_count, &members,
                           &member_count));
    CHECK(value_count == 2 && size_count == 2 && member_count == size);
    CHECK(values[0] + values[1] == 1 && sizes[0] == size / 2 && sizes[1] == size / 2);
    for (uint32_t at = 0; at < size; at++) {
        CHECK(members[at] % 2 == values[at < size / 2 ? 0 : 1]);
        sum += members[at];
    }
    CHECK(sum == size * (size - 1) / 2);
    done(&stream, &answer);
}

/* Neither takes what is meant for the other one. */
static void the_other_packets_are_refused(void)
{
    const struct {
        const char *filter;
        int tag;
    } wrong[] = {{"classes", TAG_NUMBER_CLASSES}, {"number-classes", TAG_CLASSES}};
    for (int at = 0; at < 2; at++) {
        sapwood_stream_options_t options = SAPWOOD_STREAM_OPTIONS_INIT;
        sapwood_stream_t *stream = NULL;
        sapwood_answer_t *answer = NULL;
        const sapwood_packet_t *packet = NULL;
        options.up = wrong[at].filter;
        OK(sapwood_stream_open(&stream, network, NULL, &options, &error));
        OK(sapwood_stream_broadcast(stream, wrong[at].tag, &error, "%d", 0));
        OK(sapwood_stream_recv(stream, &answer, HANG_MS, &error));
        REFUSED(sapwood_answer_value(answer, &packet, &error), NO_VALUE, wrong[at].filter);
        done(&stream, &answer);
    }
}

/* Opens a network with this program as its communication process, or with that of the library for NULL. */
static uint32_t open_network(char **argv, const char *node)
{
    const char *const back_end[] = {argv[2], NULL};
    sapwood_network_options_t options = SAPWOOD_NETWORK_OPTIONS_INIT;
    options.topology = argv[1];
    options.back_end_argv = back_end;
    options.node_program = node;
    OK(sapwood_network_open(&network, &options, &error));
    uint32_t size = (uint32_t)sapwood_network_size(network);
    CHECK(size >= 2 && size % 2 == 0);
    return size;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "node") == 0) {
        OK(sapwood_serve(&error));
        return 0;
    }
    CHECK(argc == 3);
    texts_by_classes(open_network(argv, NULL));
    OK(sapwood_network_close(&network, &error));
    uint32_t size = open_network(argv, argv[0]);
    texts_by_classes(size);
    numbers_by_number_classes(size);
    the_other_packets_are_refused();
    OK(sapwood_network_close(&network, &error));
    return 0;
}
