/*
 * sketches PROGRAM [back-end]: asks a tree of 2x2 for every sketch, and each sketch for all that it knows,
 * compared with data that is known. The back-ends are the program itself.
 */
#include "check.h"

enum { TAG_SKETCH = SAPWOOD_FIRST_TAG, NUMBERS = 250 };

static sapwood_network_t *network;
static sapwood_error_t error;

/* Opens a stream by a filter, asks for one kind of data, and reads the sketch out of the answer, which is
   gone then. */
static sapwood_sketch_t *asked(const char *filter, const char *data, int kind)
{
    sapwood_stream_options_t options = SAPWOOD_STREAM_OPTIONS_INIT;
    sapwood_stream_t *stream = NULL;
    sapwood_answer_t *answer = NULL;
    sapwood_sketch_t *sketch = NULL;
    const sapwood_packet_t *packet = NULL;
    options.up = filter;
    OK(sapwood_stream_open(&stream, network, NULL, &options, &error));
    OK(sapwood_stream_broadcast(stream, TAG_SKETCH, &error, "%s", data));
    OK(sapwood_stream_recv(stream, &answer, HANG_MS, &error));
    OK(sapwood_answer_value(answer, &packet, &error));
    CHECK(sapwood_answer_is_complete(answer));
    OK(sapwood_sketch_read(&sketch, packet, &error));
    CHECK(sapwood_sketch_kind(sketch) == kind);
    sapwood_answer_free(&answer);
    OK(sapwood_stream_close(&stream, &error));
    return sketch;
}

static int is_text(const sapwood_sketch_entry_t *entry, const char *text, uint64_t times)
{
    return entry->kind == SAPWOOD_TYPE_STRING && strcmp(entry->text, text) == 0 &&
           entry->text_bytes == strlen(text) && entry->at_least == times && entry->at_most == times;
}

/* All numbers from 1 to 1000. */
static void quantiles(void)
{
    sapwood_sketch_t *sketch = asked("quantiles", "numbers", SAPWOOD_SKETCH_QUANTILES);
    double number = 0, share = 0, low = 0, high = 0;
    OK(sapwood_sketch_relative_error(sketch, &share, &error));
    CHECK(share == 0.01 && sapwood_sketch_count(sketch) == 4 * NUMBERS);
    OK(sapwood_sketch_quantile(sketch, 0.99, &number, &error));
    CHECK(number > 990 * 0.99 && number < 990 * 1.01);
    OK(sapwood_sketch_range(sketch, &low, &high, &error));
    CHECK(low == 1 && high == 4 * NUMBERS && sapwood_sketch_left_out(sketch) == 4);
    REFUSED(sapwood_sketch_rank_error(sketch, 0.01, &number, &error), USAGE, "'quantiles' has no error in place");
    REFUSED(sapwood_sketch_bins(sketch, NULL, NULL, &error), USAGE, "ask one of histogram");
    sapwood_sketch_free(&sketch);
    sketch = asked("kll", "numbers", SAPWOOD_SKETCH_KLL);
    double places = 0;
    uint64_t rank = 0;
    OK(sapwood_sketch_rank_error(sketch, 1e-9, &places, &error));
    OK(sapwood_sketch_quantile(sketch, 0.5, &number, &error));
    CHECK(number >= 500 - places - 1 && number <= 500 + places + 1 && places < 500);
    OK(sapwood_sketch_rank(sketch, 1000, &rank, &error));
    CHECK(rank == 1000 && sapwood_sketch_count(sketch) == 1000);
    OK(sapwood_sketch_range(sketch, &low, &high, &error));
    CHECK(low == 1 && high == 1000);
    REFUSED(sapwood_sketch_relative_error(sketch, &share, &error), USAGE, "ask one of quantiles");
    sapwood_sketch_free(&sketch);
    CHECK(sketch == NULL);
    sapwood_sketch_free(&sketch);
    sketch = asked("quantiles", "nothing", SAPWOOD_SKETCH_QUANTILES);
    REFUSED(sapwood_sketch_quantile(sketch, 0.5, &number, &error), NO_VALUE, "no numbers");
    REFUSED(sapwood_sketch_range(sketch, &low, NULL, &error), NO_VALUE, "no numbers");
    sapwood_sketch_free(&sketch);
}

static void bins(void)
{
    sapwood_sketch_t *sketch = asked("histogram(0 1000 10)", "numbers", SAPWOOD_SKETCH_HISTOGRAM);
    const sapwood_sketch_bin_t *found = NULL;
    size_t count = 0;
    uint64_t under = 7, over = 7;
    OK(sapwood_sketch_bins(sketch, &found, &count, &error));
    CHECK(count == 10 && found[0].count == 99 && found[0].low == 0 && found[0].high == 100);
    for (size_t bin = 1; bin < count; bin++)
        CHECK(found[bin].count == 100 && found[bin].low == 100.0 * (double)bin);
    OK(sapwood_sketch_outside(sketch, &under, &over, &error));
    CHECK(under == 0 && over == 1 && sapwood_sketch_count(sketch) == 1000);
    CHECK(sapwood_sketch_left_out(sketch) == 4);
    sapwood_sketch_free(&sketch);
}

/* Every back-end has seen one line twice, and one that is its own. */
static void lines(void)
{
    const sapwood_sketch_entry_t *entries = NULL;
    size_t count = 0;
    double estimate = 0, deviation = 7;
    sapwood_sketch_t *sketch = asked("distinct", "lines", SAPWOOD_SKETCH_DISTINCT);
    OK(sapwood_sketch_distinct(sketch, &estimate, &deviation, &error));
    CHECK(estimate == 5 && deviation == 0 && sapwood_sketch_count(sketch) == 0);
    REFUSED(sapwood_sketch_entries(sketch, &entries, &count, &error), USAGE, "'distinct' has no entries");
    sapwood_sketch_free(&sketch);
    sketch = asked("heavy-hitters(8)", "lines", SAPWOOD_SKETCH_HEAVY_HITTERS);
    OK(sapwood_sketch_entries(sketch, &entries, &count, &error));
    CHECK(count == 5 && is_text(&entries[0], "disk full", 8) && is_text(&entries[1], "line 0", 1));
    CHECK(entries[0].ranges == NULL && entries[0].ranks[0] == '\0' && sapwood_sketch_count(sketch) == 12);
    sapwood_sketch_free(&sketch);
    sketch = asked("union(3)", "lines", SAPWOOD_SKETCH_UNION);
    OK(sapwood_sketch_entries(sketch, &entries, &count, &error));
    CHECK(count == 3 && is_text(&entries[2], "line 1", 1) && !sapwood_sketch_is_complete(sketch));
    CHECK(sapwood_sketch_count(sketch) == 3);
    sapwood_sketch_free(&sketch);
    sketch = asked("union", "integers", SAPWOOD_SKETCH_UNION);
    OK(sapwood_sketch_entries(sketch, &entries, &count, &error));
    CHECK(count == 2 && entries[0].kind == SAPWOOD_TYPE_INT64 && entries[0].integer == -5);
    CHECK(entries[1].kind == SAPWOOD_TYPE_UINT64 && entries[1].natural == UINT64_MAX);
    CHECK(entries[1].number > 1.8e19 && entries[1].text == NULL && sapwood_sketch_is_complete(sketch));
    sapwood_sketch_free(&sketch);
}

/* Odd ranks have 10 and send, even ones have 0 and wait. */
static void ranks(void)
{
    const sapwood_sketch_entry_t *entries = NULL;
    const sapwood_sketch_node_t *nodes = NULL;
    size_t count = 0;
    sapwood_sketch_t *sketch = asked("top(1)", "load", SAPWOOD_SKETCH_TOP);
    OK(sapwood_sketch_entries(sketch, &entries, &count, &error));
    CHECK(count == 1 && entries[0].kind == SAPWOOD_TYPE_INT64 && entries[0].integer == 10);
    CHECK(entries[0].number == 10 && entries[0].at_least == 2 && sapwood_sketch_count(sketch) == 2);
    CHECK(strcmp(entries[0].ranks, "1,3") == 0 && entries[0].range_count == 2);
    CHECK( entries[0].ranges[1].first == 3 && entries[0].ranges[1].last == 3);
    CHECK(sapwood_sketch_text(sketch) == NULL);
    sapwood_sketch_free(&sketch);
    sketch = asked("prefix-tree", "stack", SAPWOOD_SKETCH_PREFIX_TREE);
    CHECK(strcmp(sapwood_sketch_text(sketch), "main: 0-3\n  send: 1,3\n  wait: 0,2\n") == 0);
    OK(sapwood_sketch_nodes(sketch, &nodes, &count, &error));
    CHECK(count == 3 && nodes[0].depth == 0 && nodes[1].depth == 1 && nodes[0].range_count == 1);
    CHECK(strcmp(nodes[2].name, "wait") == 0 && nodes[2].name_bytes == 4 && nodes[2].range_count == 2);
    CHECK(strcmp(nodes[2].ranks, "0,2") == 0 && nodes[0].stacks == 4 && nodes[0].ending == 0 && nodes[2].ending == 2);
    CHECK(sapwood_sketch_count(sketch) == 4 && sapwood_sketch_is_complete(sketch));
    sapwood_sketch_free(&sketch);
}

/* What is no sketch, and what is NULL. */
static void refused(void)
{
    sapwood_stream_t *stream = NULL;
    sapwood_answer_t *answer = NULL;
    const sapwood_packet_t *packet = NULL;
    sapwood_sketch_t *sketch = NULL;
    OK(sapwood_stream_open(&stream, network, NULL, NULL, &error));
    OK(sapwood_stream_broadcast(stream, TAG_SKETCH, &error, "%s", "load"));
    OK(sapwood_stream_recv(stream, &answer, HANG_MS, &error));
    OK(sapwood_answer_value(answer, &packet, &error));
    REFUSED(sapwood_sketch_read(&sketch, packet, &error), FORMAT, "holds '%d', which is no sketch");
    REFUSED(sapwood_sketch_read(&sketch, NULL, &error), USAGE, "NULL");
    REFUSED(sapwood_sketch_read(NULL, packet, &error), USAGE, "NULL");
    REFUSED(sapwood_sketch_quantile(sketch, 0.5, NULL, &error), USAGE, "NULL");
    REFUSED(sapwood_sketch_nodes(NULL, NULL, NULL, &error), USAGE, "NULL");
    CHECK(sketch == NULL && sapwood_sketch_kind(NULL) == SAPWOOD_SKETCH_NONE);
    CHECK(sapwood_sketch_count(NULL) == 0 && sapwood_sketch_left_out(NULL) == 0);
    CHECK(!sapwood_sketch_is_complete(NULL) && sapwood_sketch_text(NULL) == NULL);
    sapwood_sketch_free(NULL);
    sapwood_answer_free(&answer);
    OK(sapwood_stream_close(&stream, &error));
}

static int answer(sapwood_back_end_t *back_end, uint32_t stream, const char *data)
{
    uint32_t rank = sapwood_back_end_rank(back_end);
    if (strcmp(data, "numbers") == 0) {
        /* One more that is none. */
        double numbers[NUMBERS + 1] = {0};
        for (uint32_t at = 0; at < NUMBERS; at++)
            numbers[at] = rank * NUMBERS + at + 1;
        numbers[NUMBERS] = strtod("nan", NULL);
        return sapwood_back_end_send(back_end, stream, TAG_SKETCH, &error, "%alf", numbers,
                                     (uint32_t)NUMBERS + 1);
    }
    if (strcmp(data, "nothing") == 0)
        return sapwood_back_end_send(back_end, stream, TAG_SKETCH, &error, "%alf", NULL, (uint32_t)0);
    if (strcmp(data, "lines") == 0) {
        char own[32];
        snprintf(own, sizeof own, "line %u", rank);
        const char *const seen[] = {"disk full", own, "disk full"};
        return sapwood_back_end_send(back_end, stream, TAG_SKETCH, &error, "%as", seen, (uint32_t)3);
    }
    if (strcmp(data, "integers") == 0)
        return rank % 2 == 0
                   ? sapwood_back_end_send(back_end, stream, TAG_SKETCH, &error, "%ld", (int64_t)-5)
                   : sapwood_back_end_send(back_end, stream, TAG_SKETCH, &error, "%uld", UINT64_MAX);
    if (strcmp(data, "load") == 0)
        return sapwood_back_end_send(back_end, stream, TAG_SKETCH, &error, "%d", (int32_t)(rank % 2 * 10));
    const char *const stack[] = {"main", rank % 2 == 0 ? "wait" : "send"};
    return sapwood_back_end_send(back_end, stream, TAG_SKETCH, &error, "%as", stack, (uint32_t)2);
}

static int be_a_back_end(void)
{
    sapwood_back_end_t *back_end = NULL;
    sapwood_packet_t *packet = NULL;
    const char *data = NULL;
    OK(sapwood_back_end_attach(&back_end, &error));
    while (sapwood_back_end_recv(back_end, &packet, -1, &error) == SAPWOOD_OK) {
        OK(sapwood_packet_read(packet, &error, "%s", &data));
        OK(answer(back_end, sapwood_packet_stream(packet), data));
        sapwood_packet_free(&packet);
    }
    CHECK(error.code == SAPWOOD_ERROR_ENDED);
    OK(sapwood_back_end_close(&back_end, &error));
    return 0;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2 || argc == 3);
    if (argc == 3)
        return be_a_back_end();
    const char *const program[] = {argv[1], argv[1], "back-end", NULL};
    sapwood_network_options_t options = SAPWOOD_NETWORK_OPTIONS_INIT;
    options.topology = "2x2";
    options.back_end_argv = program;
    OK(sapwood_network_open(&network, &options, &error));
    quantiles();
    bins();
    lines();
    ranks();
    refused();
    OK(sapwood_network_close(&network, &error));
    return 0;
}
