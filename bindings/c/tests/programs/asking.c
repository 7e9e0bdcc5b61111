/*
 * asking TOPOLOGY BACK_END: each question has its own answer, whatever else is under way.
 */
#include "check.h"

static sapwood_network_t *network;
static sapwood_error_t error;
static int32_t size;

/* Longer than SHORT_MS by far. */
enum { SHORT_MS = 50, NAP_MS = 2000 };

static sapwood_stream_t *open_sums(void)
{
    sapwood_stream_options_t options = SAPWOOD_STREAM_OPTIONS_INIT;
    sapwood_stream_t *stream = NULL;
    options.up = "sum";
    OK(sapwood_stream_open(&stream, network, NULL, &options, &error));
    return stream;
}

static int32_t number_in(const sapwood_answer_t *answer)
{
    const sapwood_packet_t *packet = NULL;
    int32_t number = 0;
    OK(sapwood_answer_value(answer, &packet, &error));
    OK(sapwood_packet_read(packet, &error, "%d", &number));
    return number;
}

/* Checks what an answer says, and frees it. */
static void check_answer(sapwood_answer_t **answer, uint64_t question, int32_t number)
{
    uint64_t told = UINT64_MAX;
    CHECK(*answer && sapwood_answer_question(*answer, &told));
    CHECK(told == question && number_in(*answer) == number);
    sapwood_answer_free(answer);
}

/* An answer that comes too late is not given for the next question. */
static void too_late(void)
{
    sapwood_stream_t *stream = open_sums();
    sapwood_answer_t *answer = NULL;
    REFUSED(sapwood_stream_ask(stream, &answer, SHORT_MS, TAG_ASKED, &error, "%d %d", NAP_MS, 1), TIMEOUT,
            "no answer within 50 ms");
    CHECK(answer == NULL);
    for (int32_t number = 42; number <= 44; number++) {
        OK(sapwood_stream_ask(stream, &answer, HANG_MS, TAG_ASKED, &error, "%d %d", 0, number));
        check_answer(&answer, (uint64_t)number - 41, number * size);
    }
    CHECK(sapwood_stream_discarded(stream) == 1);
    OK(sapwood_stream_try_recv(stream, &answer, &error));
    CHECK(answer == NULL);
    OK(sapwood_stream_close(&stream, &error));
}

/* Replies to broadcasts and what is sent unasked are received as what they are. */
static void unasked(void)
{
    sapwood_stream_t *stream = open_sums();
    sapwood_answer_t *answer = NULL;
    OK(sapwood_stream_broadcast(stream, TAG_ASKED, &error, "%d %d", 0, 5));
    OK(sapwood_stream_ask(stream, &answer, -1, TAG_UNASKED, &error, ""));
    check_answer(&answer, 1, size);
    OK(sapwood_stream_recv(stream, &answer, HANG_MS, &error));
    check_answer(&answer, 0, 5 * size);
    for (int32_t number = -1; number >= -2; number--) {
        OK(sapwood_stream_recv(stream, &answer, HANG_MS, &error));
        CHECK(!sapwood_answer_question(answer, NULL) && number_in(answer) == number * size);
        sapwood_answer_free(&answer);
    }
    OK(sapwood_stream_close(&stream, &error));
}

/* Several questions are under way, and one of them is given up. */
static void several(void)
{
    sapwood_stream_t *stream = open_sums();
    sapwood_question_t *questions[8] = {NULL};
    sapwood_answer_t *answer = NULL;
    for (int32_t at = 0; at < 8; at++)
        OK(sapwood_stream_ask_async(stream, &questions[at], TAG_ASKED, &error, "%d %d", 0, at));
    OK(sapwood_question_close(&questions[3], &error));
    CHECK(questions[3] == NULL);
    for (int32_t at = 7; at >= 0; at--) {
        if (!questions[at])
            continue;
        CHECK(sapwood_question_number(questions[at]) == (uint64_t)at);
        OK(sapwood_question_wait(questions[at], &answer, HANG_MS, &error));
        check_answer(&answer, (uint64_t)at, at * size);
        OK(sapwood_question_close(&questions[at], &error));
    }
    OK(sapwood_stream_ask_async(stream, &questions[0], TAG_ASKED, &error, "%d %d", NAP_MS, 9));
    OK(sapwood_question_try_wait(questions[0], &answer, &error));
    CHECK(answer == NULL);
    REFUSED(sapwood_question_wait(questions[0], &answer, SHORT_MS, &error), TIMEOUT, "no answer");
    OK(sapwood_question_wait(questions[0], &answer, -1, &error));
    check_answer(&answer, 8, 9 * size);
    OK(sapwood_question_close(&questions[0], &error));
    CHECK(sapwood_stream_discarded(stream) == 1);
    OK(sapwood_stream_close(&stream, &error));
}

/* Receives an answer of one packet, and gives its tag. */
static int32_t received_tag(sapwood_stream_t *stream)
{
    sapwood_answer_t *answer = NULL;
    const sapwood_packet_t *packet = NULL;
    OK(sapwood_stream_recv(stream, &answer, HANG_MS, &error));
    OK(sapwood_answer_value(answer, &packet, &error));
    int32_t tag = sapwood_packet_tag(packet);
    sapwood_answer_free(&answer);
    return tag;
}

/* Streams without one answer take no question, and a full window says so. */
static void refused(void)
{
    sapwood_stream_options_t options = SAPWOOD_STREAM_OPTIONS_INIT;
    sapwood_communicator_t *first = NULL;
    sapwood_stream_t *stream = NULL;
    sapwood_answer_t *answer = NULL;
    sapwood_question_t *question = NULL;
    uint32_t rank = 0;
    options.wave = SAPWOOD_WAVE_IMMEDIATE;
    OK(sapwood_stream_open(&stream, network, NULL, &options, &error));
    REFUSED(sapwood_stream_ask(stream, &answer, HANG_MS, TAG_ASKED, &error, "%d %d", 0, 1), USAGE,
            "does not wait for its members");
    OK(sapwood_stream_close(&stream, &error));
    OK(sapwood_stream_open(&stream, network, NULL, NULL, &error));
    if (size > 1)
        REFUSED(sapwood_stream_ask_async(stream, &question, TAG_ASKED, &error, "%d %d", 0, 1), USAGE,
                "no filter makes one answer");
    CHECK(question == NULL);
    OK(sapwood_stream_close(&stream, &error));
    options.wave = SAPWOOD_WAVE_ALL;
    options.window_bytes = 4096;
    OK(sapwood_communicator_of_ranks(&first, &rank, 1, &error));
    OK(sapwood_stream_open(&stream, network, first, &options, &error));
    OK(sapwood_stream_try_broadcast(stream, TAG_FLOOD, &error, ""));
    REFUSED(sapwood_stream_ask(stream, &answer, -1, TAG_SILENT, &error, "%d", 0), USAGE,
            "answers that have not been received");
    /* The back-end sends on this stream until it is refused, so that the stream must be open. */
    while (received_tag(stream) != TAG_FLOODED)
        continue;
    sapwood_communicator_free(&first);
    OK(sapwood_stream_close(&stream, &error));
}

/* The cause of a back-end that is gone, in the answer and in the event. */
static void cause(void)
{
    CHECK(strcmp(sapwood_cause_name(SAPWOOD_CAUSE_KILLED), "killed") == 0);
    CHECK(strcmp(sapwood_cause_name(999), "other") == 0);
    sapwood_stream_t *stream = open_sums();
    sapwood_answer_t *answer = NULL;
    OK(sapwood_stream_broadcast(stream, TAG_END, &error, "%d", 0));
    OK(sapwood_stream_recv(stream, &answer, HANG_MS, &error));
    size_t count = 0;
    const sapwood_missing_t *missing = sapwood_answer_missing(answer, &count);
    CHECK(count == 1 && missing->cause == SAPWOOD_CAUSE_EXITED && missing->cause_detail == 3);
    sapwood_answer_free(&answer);
    sapwood_event_t event;
    do
        OK(sapwood_network_next_event(network, &event, &error));
    while (event.kind != SAPWOOD_EVENT_LOST && event.kind != SAPWOOD_EVENT_NONE);
    CHECK(event.kind == SAPWOOD_EVENT_LOST && event.cause == SAPWOOD_CAUSE_EXITED && event.cause_detail == 3);
    OK(sapwood_stream_close(&stream, &error));
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    const char *back_end[] = {argv[2], NULL};
    sapwood_network_options_t options = SAPWOOD_NETWORK_OPTIONS_INIT;
    options.topology = argv[1];
    options.back_end_argv = back_end;
    options.startup_timeout_ms = HANG_MS;
    OK(sapwood_network_open(&network, &options, &error));
    size = (int32_t)sapwood_network_size(network);
    too_late();
    unasked();
    several();
    refused();
    if (size > 1)
        cause();
    OK(sapwood_network_close(&network, &error));
    return 0;
}
