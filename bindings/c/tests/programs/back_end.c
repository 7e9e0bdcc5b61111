/*
 * The back-end of the test programs: answers each packet as its tag says, until the network ends.
 *
 * With arguments FILE RANK it attaches by itself.
 */
#include "every_directive.h"

#include <poll.h>
#include <unistd.h>

static sapwood_back_end_t *back_end;
static sapwood_error_t error;

/* What comes down must be seed 7; what goes up is the rank's own. */
static void answer_every(const sapwood_packet_t *packet)
{
    struct every mine;
    check_every(packet, 7);
    fill(&mine, sapwood_back_end_rank(back_end));
    OK(sapwood_back_end_send(back_end, sapwood_packet_stream(packet), TAG_ALL, &error,
                             EVERY_DIRECTIVE, EVERY(&mine)));
}

static void answer_rank(const sapwood_packet_t *packet)
{
    int32_t offset;
    OK(sapwood_packet_read(packet, &error, "%d", &offset));
    int32_t value = offset + (int32_t)sapwood_back_end_rank(back_end);
    const void *values[] = {&value};
    OK(sapwood_back_end_send_values(back_end, sapwood_packet_stream(packet), TAG_RANK, "%d", values,
                                    1, &error));
    OK(sapwood_back_end_flush(back_end, &error));
}

/* Ends without a word if the packet names this rank. */
static void end_or_answer(const sapwood_packet_t *packet)
{
    int32_t victim;
    OK(sapwood_packet_read(packet, &error, "%d", &victim));
    if ((uint32_t)victim == sapwood_back_end_rank(back_end))
        _exit(3);
    OK(sapwood_back_end_send(back_end, sapwood_packet_stream(packet), TAG_END, &error, "%d", 1));
}

/* Texts, which no sum takes. */
static void answer_text(const sapwood_packet_t *packet)
{
    OK(sapwood_back_end_send(back_end, sapwood_packet_stream(packet), TAG_TEXTS, &error, "%s", "word"));
}

/* The rank, unless the packet names it: then nothing. */
static void answer_or_be_silent(const sapwood_packet_t *packet)
{
    int32_t silent, rank = (int32_t)sapwood_back_end_rank(back_end);
    OK(sapwood_packet_read(packet, &error, "%d", &silent));
    if (silent != rank)
        OK(sapwood_back_end_send(back_end, sapwood_packet_stream(packet), TAG_SILENT, &error, "%d", rank));
}

static void answer_doubles(const sapwood_packet_t *packet)
{
    double numbers[] = {1, sapwood_back_end_rank(back_end)};
    OK(sapwood_back_end_send(back_end, sapwood_packet_stream(packet), TAG_DOUBLES, &error, "%alf", numbers,
                             (uint32_t)2));
}

/* As many doubles as are asked for: 0, 1, ... */
static void answer_series(const sapwood_packet_t *packet)
{
    int32_t count;
    OK(sapwood_packet_read(packet, &error, "%d", &count));
    double *series = calloc((size_t)count, sizeof *series);
    CHECK(series != NULL);
    for (int32_t at = 0; at < count; at++)
        series[at] = at;
    OK(sapwood_back_end_send(back_end, sapwood_packet_stream(packet), TAG_SERIES, &error, "%alf", series,
                             (uint32_t)count));
    free(series);
}

/* "%d milliseconds %d number": the number, after a nap of this back-end if it is the first. */
static void answer_asked(const sapwood_packet_t *packet)
{
    int32_t nap_ms, number;
    bool is_open = false;
    OK(sapwood_packet_read(packet, &error, "%d %d", &nap_ms, &number));
    if (sapwood_back_end_rank(back_end) == 0 && nap_ms > 0)
        CHECK(poll(NULL, 0, nap_ms) == 0);
    OK(sapwood_back_end_reply(back_end, packet, &is_open, &error, "%d", number));
    CHECK(is_open);
    REFUSED(sapwood_back_end_reply(back_end, packet, NULL, &error, "%d", number), USAGE, "has passed");
    REFUSED(sapwood_back_end_reply(back_end, NULL, NULL, &error, "%d", number), USAGE, "NULL");
}

/* One value unasked, the answer, and another value unasked. */
static void answer_among_others(const sapwood_packet_t *packet)
{
    uint32_t stream = sapwood_packet_stream(packet);
    OK(sapwood_back_end_send(back_end, stream, TAG_UNASKED, &error, "%d", -1));
    OK(sapwood_back_end_reply(back_end, packet, NULL, &error, "%d", 1));
    OK(sapwood_back_end_try_send(back_end, stream, TAG_UNASKED, &error, "%d", -2));
}

/* Sends until there is no room, and waits for room to say so. */
static void flood(const sapwood_packet_t *packet)
{
    char load[1000] = {0};
    int code;
    do
        code = sapwood_back_end_try_send(back_end, sapwood_packet_stream(packet), TAG_FLOOD, &error, "%ac",
                                         load, (uint32_t)sizeof load);
    while (code == 0);
    CHECK(code == SAPWOOD_ERROR_WOULD_WAIT && strcmp(sapwood_error_name(code), "would_wait") == 0);
    OK(sapwood_back_end_send(back_end, sapwood_packet_stream(packet), TAG_FLOODED, &error, ""));
}

static void misuse(const sapwood_packet_t *packet)
{
    uint32_t stream = sapwood_packet_stream(packet);
    int32_t number;
    REFUSED(sapwood_packet_read(packet, &error, "%lf", &number), FORMAT, "holds '%d', not '%lf'");
    REFUSED(sapwood_packet_read(packet, &error, "%d %d", &number, &number), FORMAT, "not '%d %d'");
    REFUSED(sapwood_back_end_send(back_end, stream + 99, TAG_MISUSE, &error, "%d", 1), USAGE,
            "is not open");
    REFUSED(sapwood_back_end_send(back_end, stream, TAG_MISUSE, &error, "%y", 1), FORMAT, "'%y'");
    REFUSED(sapwood_back_end_send(back_end, stream, TAG_MISUSE, &error, NULL), USAGE, "NULL");
    REFUSED(sapwood_back_end_send(back_end, stream, SAPWOOD_FIRST_TAG - 1, &error, "%d", 1), USAGE,
            "tag 99 is the network's own");
    REFUSED(sapwood_back_end_send_in_wave(back_end, stream, 5, -1, &error, "%d", 1), USAGE,
            "tag -1 is the network's own");
    REFUSED(sapwood_back_end_wait_for_stream(back_end, NULL, 0, &error), USAGE, "NULL");
    REFUSED(sapwood_back_end_recv(back_end, NULL, 0, &error), USAGE, "NULL");
    OK(sapwood_back_end_send_in_wave(back_end, stream, 5, TAG_MISUSE, &error, "%d", 1));
    REFUSED(sapwood_back_end_send_in_wave(back_end, stream, 2, TAG_MISUSE, &error, "%d", 1), USAGE,
            "wave 2 has passed");
}

/* A key that every second rank has, and a content. */
static void answer_class(const sapwood_packet_t *packet)
{
    const char *key = sapwood_back_end_rank(back_end) % 2 == 0 ? "even" : "odd";
    OK(sapwood_back_end_send(back_end, sapwood_packet_stream(packet), TAG_CLASSES, &error, "%s %s", key, "word"));
}

/* One class with this rank alone: whether it is odd. */
static void answer_number_class(const sapwood_packet_t *packet)
{
    uint32_t rank = sapwood_back_end_rank(back_end), number = rank % 2, size = 1, one = 1;
    OK(sapwood_back_end_send(back_end, sapwood_packet_stream(packet), TAG_NUMBER_CLASSES, &error, "%aud %aud %aud",
                             &number, one, &size, one, &rank, one));
}

static void answer(const sapwood_packet_t *packet)
{
    switch (sapwood_packet_tag(packet)) {
    case TAG_ALL: answer_every(packet); break;
    case TAG_RANK: answer_rank(packet); break;
    case TAG_END: end_or_answer(packet); break;
    case TAG_TEXTS: answer_text(packet); break;
    case TAG_MISUSE: misuse(packet); break;
    case TAG_SILENT: answer_or_be_silent(packet); break;
    case TAG_DOUBLES: answer_doubles(packet); break;
    case TAG_SERIES: answer_series(packet); break;
    case TAG_ASKED: answer_asked(packet); break;
    case TAG_UNASKED: answer_among_others(packet); break;
    case TAG_FLOOD: flood(packet); break;
    case TAG_CLASSES: answer_class(packet); break;
    case TAG_NUMBER_CLASSES: answer_number_class(packet); break;
    default: fail(__FILE__, __LINE__, "tag", "is unknown");
    }
}

int main(int argc, char **argv)
{
    if (argc == 3)
        OK(sapwood_back_end_attach_by_file(&back_end, argv[1], (uint32_t)atoi(argv[2]), &error));
    else
        OK(sapwood_back_end_attach(&back_end, &error));
    CHECK(sapwood_back_end_descriptor(back_end) >= 0);
    int code;
    for (;;) {
        sapwood_packet_t *packet = NULL;
        code = sapwood_back_end_recv(back_end, &packet, -1, &error);
        if (code != 0)
            break;
        answer(packet);
        sapwood_packet_free(&packet);
        CHECK(packet == NULL);
    }
    CHECK(code == SAPWOOD_ERROR_ENDED && sapwood_back_end_has_ended(back_end));
    OK(sapwood_back_end_close(&back_end, &error));
    OK(sapwood_back_end_close(&back_end, &error));
    return 0;
}
