/*
 * filters BACK_END LIBRARY FOLDER MODULE FAULTS: filters and rules of one's own, where they lie and shipped through
 * the tree; LIBRARY is removed once it is shipped. MODULE is sums.wasm, FAULTS has those that never come back.
 */
#include "check.h"

#include <unistd.h>

enum { LIMIT_MS = 300 };

static sapwood_network_t *network;
static sapwood_error_t error;

static void open_network(char **program, int32_t limit_ms)
{
    sapwood_network_options_t options = SAPWOOD_NETWORK_OPTIONS_INIT;
    const char *const back_end[] = {program[0], NULL};
    options.topology = "1x4";
    options.back_end_argv = back_end;
    options.filter_limit_ms = limit_ms;
    OK(sapwood_network_open(&network, &options, &error));
}

/* Asks once for the ranks plus 10; gives the answer. */
static sapwood_answer_t *ask(sapwood_stream_t *stream, int tag, int32_t number)
{
    sapwood_answer_t *answer = NULL;
    OK(sapwood_stream_broadcast(stream, tag, &error, "%d", number));
    OK(sapwood_stream_recv(stream, &answer, HANG_MS, &error));
    return answer;
}

static void sums_by(const char *filter, int32_t sum)
{
    sapwood_stream_options_t options = SAPWOOD_STREAM_OPTIONS_INIT;
    sapwood_stream_t *stream = NULL;
    const sapwood_packet_t *packet = NULL;
    int32_t got = 0;
    options.up = filter;
    OK(sapwood_stream_open(&stream, network, NULL, &options, &error));
    for (int wave = 0; wave < 3; wave++) {
        sapwood_answer_t *answer = ask(stream, TAG_RANK, 10);
        OK(sapwood_answer_value(answer, &packet, &error));
        OK(sapwood_packet_read(packet, &error, "%d", &got));
        CHECK(got == sum && sapwood_answer_is_complete(answer));
        sapwood_answer_free(&answer);
    }
    OK(sapwood_stream_close(&stream, &error));
}

static void sums_of_doubles(const char *filter)
{
    sapwood_stream_options_t options = SAPWOOD_STREAM_OPTIONS_INIT;
    sapwood_stream_t *stream = NULL;
    const sapwood_packet_t *packet = NULL;
    const double *sums = NULL;
    uint32_t count = 0;
    options.up = filter;
    OK(sapwood_stream_open(&stream, network, NULL, &options, &error));
    sapwood_answer_t *answer = ask(stream, TAG_DOUBLES, 0);
    OK(sapwood_answer_value(answer, &packet, &error));
    OK(sapwood_packet_read(packet, &error, "%alf", &sums, &count));
    CHECK(count == 2 && sums[0] == 4 && sums[1] == 6);
    sapwood_answer_free(&answer);
    OK(sapwood_stream_close(&stream, &error));
}

/* A stream of sums whose waves go on when three children have given their part: rank 3 is silent. */
static void lets_go_by(const char *rule)
{
    sapwood_stream_options_t options = SAPWOOD_STREAM_OPTIONS_INIT;
    sapwood_stream_t *stream = NULL;
    const sapwood_packet_t *packet = NULL;
    const sapwood_missing_t *missing;
    size_t count;
    int32_t sum = 0;
    options.up = "sum";
    options.rule = rule;
    options.rule_text = "3";
    OK(sapwood_stream_open(&stream, network, NULL, &options, &error));
    sapwood_answer_t *answer = ask(stream, TAG_SILENT, 3);
    OK(sapwood_answer_value(answer, &packet, &error));
    OK(sapwood_packet_read(packet, &error, "%d", &sum));
    CHECK(sum == 3 && sapwood_answer_contributor_count(answer) == 3);
    missing = sapwood_answer_missing(answer, &count);
    CHECK(count == 1 && strcmp(missing[0].ranks, "3") == 0);
    CHECK(strstr(missing[0].reason, "when the stream's wave rule forwarded wave 0"));
    sapwood_answer_free(&answer);
    OK(sapwood_stream_close(&stream, &error));
}

static void what_there_is_not(const char *library)
{
    sapwood_stream_options_t options = SAPWOOD_STREAM_OPTIONS_INIT;
    sapwood_stream_t *none = NULL;
    const char *name = NULL;
    char named[4200];
    options.rule = "sum";
    REFUSED(sapwood_stream_open(&none, network, NULL, &options, &error), FILTER, "no synchronisation rule");
    options.rule = "native:nowhere/libnone.so#quorum";
    REFUSED(sapwood_stream_open(&none, network, NULL, &options, &error), FILTER, "no file of filters");
    snprintf(named, sizeof named, "native:%s#add", library);
    options.rule = named;
    REFUSED(sapwood_stream_open(&none, network, NULL, &options, &error), FILTER, "it has no decide");
    snprintf(named, sizeof named, "native:%s#quorum", library);
    REFUSED(sapwood_stream_open(&none, network, NULL, &options, &error), FILTER, "a text of one digit");
    options.rule = NULL;
    options.up = named;
    REFUSED(sapwood_stream_open(&none, network, NULL, &options, &error), FILTER, "");
    REFUSED(sapwood_network_ship(network, "nowhere/libnone.so", NULL, &name, &error), FILTER, "no file of filters");
    REFUSED(sapwood_network_ship(network, "/etc/passwd", NULL, &name, &error), FILTER, "neither a shared object");
    REFUSED(sapwood_network_ship(network, NULL, NULL, &name, &error), USAGE, "NULL");
    REFUSED(sapwood_network_ship(NULL, library, NULL, &name, &error), USAGE, "the handle is NULL");
    CHECK(name == NULL && none == NULL);
}

static void an_endless_filter(const char *faults)
{
    sapwood_stream_options_t options = SAPWOOD_STREAM_OPTIONS_INIT;
    sapwood_stream_t *endless = NULL;
    const sapwood_packet_t *packet = NULL;
    char named[4200];
    snprintf(named, sizeof named, "native:%s#loop", faults);
    options.up = named;
    OK(sapwood_stream_open(&endless, network, NULL, &options, &error));
    for (int wave = 0; wave < 2; wave++) {
        sapwood_answer_t *answer = ask(endless, TAG_RANK, 10);
        REFUSED(sapwood_answer_value(answer, &packet, &error), NO_VALUE, "has run for 300 ms and is given up");
        sapwood_answer_free(&answer);
        sums_by("sum", 46);
    }
    OK(sapwood_stream_close(&endless, &error));
}

/* A rule that never decides: a wave that is not whole fails with that reason. */
static void an_endless_rule(const char *faults)
{
    sapwood_stream_options_t options = SAPWOOD_STREAM_OPTIONS_INIT;
    sapwood_stream_t *endless = NULL;
    const sapwood_packet_t *packet = NULL;
    char named[4200];
    snprintf(named, sizeof named, "native:%s#think", faults);
    options.up = "sum";
    options.rule = named;
    OK(sapwood_stream_open(&endless, network, NULL, &options, &error));
    sapwood_answer_t *answer = ask(endless, TAG_SILENT, 3);
    REFUSED(sapwood_answer_value(answer, &packet, &error), NO_VALUE, "#think' of stream");
    CHECK(strstr(error.text, "has run for 300 ms and is given up"));
    sapwood_answer_free(&answer);
    sums_by("sum", 46);
    OK(sapwood_stream_close(&endless, &error));
}

int main(int argc, char **argv)
{
    CHECK(argc == 6);
    const char *library = argv[2];
    const char *shipped = NULL, *rule = NULL, *again = NULL, *module = NULL;
    char named[4200];

    open_network(argv + 1, -1);
    snprintf(named, sizeof named, "native:%s#add", library);
    sums_by(named, 46);
    snprintf(named, sizeof named, "native:%s#quorum", library);
    lets_go_by(named);
    what_there_is_not(library);
    OK(sapwood_network_close(&network, &error));

    open_network(argv + 1, LIMIT_MS);
    an_endless_filter(argv[5]);
    an_endless_rule(argv[5]);
    OK(sapwood_network_close(&network, &error));

    open_network(argv + 1, 0);
    OK(sapwood_network_ship(network, library, "add", &shipped, &error));
    OK(sapwood_network_ship(network, library, "quorum", &rule, &error));
    OK(sapwood_network_ship(network, library, "add", &again, &error));
    OK(sapwood_network_ship(network, argv[4], "sum3", &module, &error));
    OK(sapwood_network_ship(network, argv[4], NULL, NULL, &error));
    CHECK(strcmp(shipped, again) == 0 && strncmp(module, "wasm:", 5) == 0);
    CHECK(unlink(library) == 0 && rmdir(argv[3]) == 0);
    sums_by(shipped, 46);
    lets_go_by(rule);
    sums_of_doubles(module);
    OK(sapwood_network_close(&network, &error));
    return 0;
}
