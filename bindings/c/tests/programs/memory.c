/*
 * memory WHO: processes for which a packet of 48 MB is too long say so, and go on with small ones. WHO is front or
 * back, which this program gives too little memory by itself, or node: the test limits the communication processes.
 * The back-ends are this program, too, without arguments.
 */
#include "check.h"

#include <sys/resource.h>
#include <unistd.h>

enum { NUMBERS = 6000000, SPARE_BYTES = 32 << 20 };
enum { TAG_LIMIT = SAPWOOD_FIRST_TAG, TAG_UP, TAG_DOWN, TAG_SMALL };

static sapwood_error_t error;
static sapwood_network_t *network;

/* From now on this process gets so much memory more than it has, and not enough for one packet. */
static void limit_memory(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%lu", &pages) == 1);
    fclose(file);
    struct rlimit limit = {pages * (unsigned long)sysconf(_SC_PAGESIZE) + SPARE_BYTES, RLIM_INFINITY};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
}

static double *numbers(void)
{
    static double *made;
    if (made == NULL)
        made = calloc(NUMBERS, sizeof *made);
    CHECK(made != NULL);
    return made;
}

static int serve(void)
{
    sapwood_back_end_t *back_end = NULL;
    sapwood_packet_t *packet = NULL;
    double lost = 0;
    OK(sapwood_back_end_attach(&back_end, &error));
    double rank = sapwood_back_end_rank(back_end);
    uint32_t id = 0;
    OK(sapwood_back_end_wait_for_stream(back_end, &id, HANG_MS, &error));
    double *all = numbers();
    for (;;) {
        int code = sapwood_back_end_recv(back_end, &packet, HANG_MS, &error);
        if (code == SAPWOOD_ERROR_MEMORY) {
            CHECK(strcmp(error.text, "out of memory: 48000008 bytes") == 0);
            lost += 1;
            continue;
        }
        if (code == SAPWOOD_ERROR_ENDED)
            break;
        CHECK(code == SAPWOOD_OK);
        int32_t tag = sapwood_packet_tag(packet);
        id = sapwood_packet_stream(packet);
        sapwood_packet_free(&packet);
        double small = tag == TAG_SMALL ? rank + 100 * lost : 0;
        if (tag == TAG_LIMIT)
            limit_memory();
        if (tag == TAG_DOWN)
            continue;
        if (tag == TAG_UP) {
            code = sapwood_back_end_send(back_end, id, tag, &error, "%alf", all, (uint32_t)NUMBERS);
            if (code == SAPWOOD_OK)
                continue;
            CHECK(code == SAPWOOD_ERROR_MEMORY);
            CHECK(strcmp(error.text, "out of memory: 48000008 bytes") == 0);
            small = 1000;
        }
        OK(sapwood_back_end_send(back_end, id, tag, &error, "%alf", &small, (uint32_t)1));
    }
    OK(sapwood_back_end_close(&back_end, &error));
    return 0;
}

static sapwood_stream_t *open_stream(const char *filter)
{
    sapwood_stream_options_t options = SAPWOOD_STREAM_OPTIONS_INIT;
    sapwood_stream_t *stream = NULL;
    options.up = filter;
    OK(sapwood_stream_open(&stream, network, NULL, &options, &error));
    return stream;
}

/* One number of each back-end, added up. */
static void check_sum(sapwood_stream_t *stream, int32_t tag, double wanted)
{
    sapwood_answer_t *answer = NULL;
    const sapwood_packet_t *packet = NULL;
    const double *sums = NULL;
    uint32_t count = 0;
    OK(sapwood_stream_broadcast(stream, tag, &error, ""));
    OK(sapwood_stream_recv(stream, &answer, HANG_MS, &error));
    OK(sapwood_answer_value(answer, &packet, &error));
    CHECK(sapwood_answer_is_complete(answer));
    OK(sapwood_packet_read(packet, &error, "%alf", &sums, &count));
    CHECK(count == 1 && sums[0] == wanted);
    sapwood_answer_free(&answer);
}

/* Packets that are too long for one process's memory: the answer names its ranks. */
static void check_missing(sapwood_stream_t *stream, const char *words)
{
    sapwood_answer_t *answer = NULL;
    size_t count = 0;
    int found = 0;
    OK(sapwood_stream_broadcast(stream, TAG_UP, &error, ""));
    OK(sapwood_stream_recv(stream, &answer, HANG_MS, &error));
    const sapwood_missing_t *missing = sapwood_answer_missing(answer, &count);
    for (size_t at = 0; at < count; at++) {
        found |= strstr(missing[at].reason, words) != NULL;
        printf("missing: %s\n", missing[at].reason);
    }
    CHECK(found);
    sapwood_answer_free(&answer);
}

int main(int argc, char **argv)
{
    if (argc == 1)
        return serve();
    CHECK(argc == 2);
    const char *const back_end[] = {argv[0], NULL};
    sapwood_network_options_t options = SAPWOOD_NETWORK_OPTIONS_INIT;
    options.topology = "2x2";
    options.back_end_argv = back_end;
    OK(sapwood_network_open(&network, &options, &error));
    sapwood_stream_t *sum = open_stream("sum"), *all = open_stream("concatenate");
    double *sent = numbers();
    double expected = 0 + 1 + 2 + 3;
    if (strcmp(argv[1], "front") == 0) {
        limit_memory();
        REFUSED(sapwood_stream_broadcast(sum, TAG_DOWN, &error, "%alf", sent, (uint32_t)NUMBERS), MEMORY,
                "out of memory: 48000008 bytes");
        check_missing(sum, "out of memory: 48000008 bytes (at rank 4)");
    } else if (strcmp(argv[1], "back") == 0) {
        check_sum(sum, TAG_LIMIT, 0);
        check_sum(sum, TAG_UP, 4 * 1000);
        OK(sapwood_stream_broadcast(sum, TAG_DOWN, &error, "%alf", sent, (uint32_t)NUMBERS));
        expected += 4 * 100;
    } else {
        check_missing(all, "out of memory: ");
    }
    for (int wave = 0; wave < 3; wave++)
        check_sum(sum, TAG_SMALL, expected);
    OK(sapwood_stream_close(&sum, &error));
    OK(sapwood_stream_close(&all, &error));
    OK(sapwood_network_close(&network, &error));
    return 0;
}
