/* misuse BACK_END: what a caller can get wrong is an error code with words, and changes nothing. */
#include "check.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static sapwood_network_t *network;
static sapwood_stream_t *stream;
static sapwood_error_t error;

static void nothing_in_place_of_a_handle(void)
{
    sapwood_answer_t *answer = NULL;
    sapwood_back_end_t *back_end = NULL;
    const sapwood_packet_t *packet = NULL;
    uint32_t rank = 0;
    REFUSED(sapwood_network_open(NULL, NULL, &error), USAGE, "NULL");
    REFUSED(sapwood_network_flush(NULL, &error), USAGE, "network: the handle is NULL");
    REFUSED(sapwood_network_turn(NULL, 0, &error), USAGE, "NULL");
    REFUSED(sapwood_network_next_event(NULL, NULL, &error), USAGE, "NULL");
    REFUSED(sapwood_stream_broadcast(NULL, 100, &error, "%d", 1), USAGE, "stream: the handle is NULL");
    REFUSED(sapwood_stream_recv(NULL, &answer, 0, &error), USAGE, "NULL");
    REFUSED(sapwood_back_end_send(NULL, 0, 100, &error, "%d", 1), USAGE, "back-end: the handle is NULL");
    REFUSED(sapwood_back_end_wait_for_stream(NULL, &rank, 0, &error), USAGE, "NULL");
    REFUSED(sapwood_packet_read(NULL, &error, "%d", &rank), USAGE, "packet: is NULL");
    REFUSED(sapwood_answer_value(NULL, &packet, &error), USAGE, "answer: is NULL");
    REFUSED(sapwood_communicator_of_ranks(NULL, &rank, 1, &error), USAGE, "NULL");
    REFUSED(sapwood_back_end_attach(&back_end, &error), START, "SAPWOOD_PARENT is not set");
    CHECK(back_end == NULL);
    CHECK(sapwood_network_flush(NULL, NULL) == SAPWOOD_ERROR_USAGE);
    CHECK(sapwood_network_descriptor(NULL) == -1 && sapwood_network_size(NULL) == 0);
    CHECK(sapwood_answer_missing(NULL, NULL) == NULL && sapwood_packet_format(NULL) == NULL);
    sapwood_packet_free(NULL);
    sapwood_answer_free(&answer);
    sapwood_communicator_free(NULL);
    OK(sapwood_network_close(NULL, &error));
    OK(sapwood_back_end_close(&back_end, &error));
}

static void options_that_make_no_sense(char **program)
{
    sapwood_network_options_t options = SAPWOOD_NETWORK_OPTIONS_INIT;
    sapwood_network_t *none = NULL;
    const char *const missing[] = {"./there-is-no-such-program", NULL};
    const char *const empty[] = {NULL};
    REFUSED(sapwood_network_open(&none, &options, &error), USAGE, "give one of");
    options.topology = "4^";
    options.back_end_argv = (const char *const *)program;
    REFUSED(sapwood_network_open(&none, &options, &error), TOPOLOGY, "4^");
    options.topology = "2";
    options.back_end_argv = missing;
    REFUSED(sapwood_network_open(&none, &options, &error), START, "there-is-no-such-program");
    options.back_end_argv = empty;
    REFUSED(sapwood_network_open(&none, &options, &error), USAGE, "is empty");
    options.back_end_argv = (const char *const *)program;
    options.transport = 77;
    REFUSED(sapwood_network_open(&none, &options, &error), USAGE, "transport: 77");
    options.transport = SAPWOOD_TRANSPORT_AUTOMATIC;
    options.size = 3;
    REFUSED(sapwood_network_open(&none, &options, &error), USAGE, "INIT");
    CHECK(none == NULL);
}

static void streams_that_cannot_be(void)
{
    sapwood_stream_options_t options = SAPWOOD_STREAM_OPTIONS_INIT;
    sapwood_communicator_t *strangers = NULL;
    sapwood_stream_t *none = NULL;
    uint32_t rank = 17;
    options.up = "summ";
    REFUSED(sapwood_stream_open(&none, network, NULL, &options, &error), FILTER, "'summ'");
    options.up = NULL;
    options.wave = 9;
    REFUSED(sapwood_stream_open(&none, network, NULL, &options, &error), USAGE, "wave: 9");
    OK(sapwood_communicator_of_ranks(&strangers, &rank, 1, &error));
    REFUSED(sapwood_stream_open(&none, network, strangers, NULL, &error), USAGE, "17");
    CHECK(none == NULL);
    sapwood_communicator_free(&strangers);
    REFUSED(sapwood_communicator_parse(&strangers, "5-x", &error), USAGE, "'5-x'");
    REFUSED(sapwood_stream_send_to(stream, 17, 100, &error, "%d", 1), USAGE, "17");
}

static void formats_that_are_none(void)
{
    double odd[3] = {0};
    REFUSED(sapwood_stream_broadcast(stream, 100, &error, "%q", 1), FORMAT, "'%q'");
    REFUSED(sapwood_stream_broadcast(stream, 100, &error, NULL), USAGE, "format string: is NULL");
    REFUSED(sapwood_stream_broadcast(stream, 100, &error, "%s", (char *)NULL), USAGE, "NULL");
    REFUSED(sapwood_stream_broadcast(stream, 100, &error, "%ad", (int32_t *)NULL, (uint32_t)2), USAGE,
            "NULL and has elements");
    REFUSED(sapwood_stream_broadcast(stream, 100, &error, "%alf", (char *)odd + 1, (uint32_t)2), USAGE,
            "aligned");
    REFUSED(sapwood_stream_broadcast(stream, 100, &error, "%Ac", odd, UINT64_MAX), USAGE,
            "longer than memory");
    REFUSED(sapwood_stream_broadcast_values(stream, 100, "%d", NULL, 0, &error), USAGE, "wants more");
}

/* Those below SAPWOOD_FIRST_TAG are the network's. */
static void tags_that_are_the_networks(void)
{
    static const int32_t tags[] = {SAPWOOD_FIRST_TAG - 1, 1, 0, -1, INT32_MIN};
    const char *words = "is the network's own; an application's begin at 100";
    sapwood_communicator_t *some = NULL;
    uint32_t rank = 1;
    OK(sapwood_communicator_of_ranks(&some, &rank, 1, &error));
    for (size_t at = 0; at < sizeof tags / sizeof tags[0]; at++) {
        REFUSED(sapwood_stream_broadcast(stream, tags[at], &error, "%d", 1), USAGE, words);
        REFUSED(sapwood_stream_broadcast_values(stream, tags[at], "", NULL, 0, &error), USAGE, words);
        REFUSED(sapwood_stream_send_to(stream, 0, tags[at], &error, "%d", 1), USAGE, words);
        REFUSED(sapwood_stream_send_to_some_values(stream, some, tags[at], "", NULL, 0, &error), USAGE,
                words);
    }
    sapwood_communicator_free(&some);
}

static void waits_that_end(void)
{
    sapwood_answer_t *answer = NULL;
    REFUSED(sapwood_stream_recv(stream, &answer, 1, &error), TIMEOUT, "within 1 ms");
    REFUSED(sapwood_stream_recv(stream, &answer, -2, &error), USAGE, "-2");
    REFUSED(sapwood_network_turn(network, -1, &error), USAGE, "-1");
    OK(sapwood_stream_try_recv(stream, &answer, &error));
    CHECK(answer == NULL && error.code == 0 && error.text[0] == 0);
}

static void *on_another_thread(void *nothing)
{
    sapwood_error_t error;
    REFUSED(sapwood_stream_broadcast(stream, 100, &error, "%d", 1), THREAD, "another thread");
    REFUSED(sapwood_network_flush(network, &error), THREAD, "another thread");
    REFUSED(sapwood_network_close(&network, &error), THREAD, "another thread");
    CHECK(network != NULL && sapwood_network_descriptor(network) == -1);
    return nothing;
}

/* The child must neither write to its parent's connections nor end its parent's tree. */
static void in_a_forked_child(void)
{
    int status = 1;
    pid_t child = fork();
    if (child == 0) {
        REFUSED(sapwood_stream_broadcast(stream, 100, &error, "%d", 1), FORKED, "forked");
        REFUSED(sapwood_stream_close(&stream, &error), FORKED, "forked");
        REFUSED(sapwood_network_close(&network, &error), FORKED, "forked");
        _exit(0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

/* The network works as if nothing had happened. */
static void all_is_well(void)
{
    sapwood_answer_t *answer = NULL;
    const sapwood_packet_t *packet = NULL;
    int32_t sum = 0;
    OK(sapwood_stream_broadcast(stream, TAG_RANK, &error, "%d", 10));
    OK(sapwood_stream_recv(stream, &answer, HANG_MS, &error));
    OK(sapwood_answer_value(answer, &packet, &error));
    OK(sapwood_packet_read(packet, &error, "%d", &sum));
    CHECK(sum == 21 && sapwood_answer_is_complete(answer));
    sapwood_answer_free(&answer);
}

/* A wave that a filter cannot combine has no value, and says why. */
static void an_answer_without_a_value(void)
{
    sapwood_stream_options_t options = SAPWOOD_STREAM_OPTIONS_INIT;
    sapwood_stream_t *failing = NULL;
    sapwood_answer_t *answer = NULL;
    const sapwood_packet_t *packet = NULL;
    options.up = "sum";
    OK(sapwood_stream_open(&failing, network, NULL, &options, &error));
    OK(sapwood_stream_broadcast(failing, TAG_TEXTS, &error, ""));
    OK(sapwood_stream_recv(failing, &answer, HANG_MS, &error));
    REFUSED(sapwood_answer_value(answer, &packet, &error), NO_VALUE, "filter 'sum'");
    CHECK(packet == NULL && sapwood_answer_contributor_count(answer) == 0);
    CHECK(!sapwood_answer_is_complete(answer));
    sapwood_answer_free(&answer);
    OK(sapwood_stream_close(&failing, &error));
}

/* The back-ends try their own misuse, and then send in wave 5 of this stream. */
static void misuse_at_the_back_ends(void)
{
    sapwood_stream_t *fresh = NULL;
    sapwood_answer_t *answer = NULL;
    const sapwood_packet_t *packet = NULL;
    OK(sapwood_stream_open(&fresh, network, NULL, NULL, &error));
    OK(sapwood_stream_broadcast(fresh, TAG_MISUSE, &error, "%d", 1));
    do {
        sapwood_answer_free(&answer);
        OK(sapwood_stream_recv(fresh, &answer, HANG_MS, &error));
    } while (sapwood_answer_value(answer, &packet, NULL) == SAPWOOD_ERROR_NO_VALUE);
    CHECK(sapwood_answer_wave(answer) == 5 && sapwood_packet_tag(packet) == TAG_MISUSE);
    sapwood_answer_free(&answer);
    OK(sapwood_stream_close(&fresh, &error));
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    pthread_t thread;
    sapwood_network_options_t options = SAPWOOD_NETWORK_OPTIONS_INIT;
    sapwood_stream_options_t stream_options = SAPWOOD_STREAM_OPTIONS_INIT;
    nothing_in_place_of_a_handle();
    options_that_make_no_sense(argv + 1);
    options.topology = "2";
    options.back_end_argv = (const char *const *)argv + 1;
    stream_options.up = "sum";
    OK(sapwood_network_open(&network, &options, &error));
    OK(sapwood_stream_open(&stream, network, NULL, &stream_options, &error));
    streams_that_cannot_be();
    formats_that_are_none();
    tags_that_are_the_networks();
    waits_that_end();
    CHECK(pthread_create(&thread, NULL, on_another_thread, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    in_a_forked_child();
    all_is_well();
    an_answer_without_a_value();
    misuse_at_the_back_ends();
    OK(sapwood_network_close(&network, &error));
    OK(sapwood_network_close(&network, &error));
    OK(sapwood_stream_close(&stream, &error));
    OK(sapwood_stream_close(&stream, &error));
    CHECK(network == NULL && stream == NULL);
    return 0;
}
