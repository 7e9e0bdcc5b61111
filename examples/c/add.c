/*
 * Integer addition: the front-end sends a number to every back-end, each adds its rank, and the tree
 * brings back one sum. Run without arguments it is the front-end; the tree runs the same program with
 * "back-end".
 */
#include <sapwood.h>

#include <stdio.h>
#include <string.h>

enum { ADD = SAPWOOD_FIRST_TAG, DEADLINE_MS = 10000 };

static int back_end(sapwood_error_t *error)
{
    sapwood_back_end_t *back_end = NULL;
    sapwood_packet_t *request = NULL;
    int64_t number;
    int code = sapwood_back_end_attach(&back_end, error);

    while (code == 0 && (code = sapwood_back_end_recv(back_end, &request, -1, error)) == 0) {
        if ((code = sapwood_packet_read(request, error, "%ld", &number)) == 0)
            code = sapwood_back_end_send(back_end, sapwood_packet_stream(request), ADD, error, "%ld",
                                         number + sapwood_back_end_rank(back_end));
        sapwood_packet_free(&request);
    }
    sapwood_back_end_close(&back_end, NULL);
    return code == SAPWOOD_ERROR_ENDED ? 0 : code;
}

static void print_answer(const sapwood_answer_t *answer, int64_t sum)
{
    size_t count;
    const sapwood_rank_range_t *ranks = sapwood_answer_contributors(answer, &count);
    printf("%lld from ranks", (long long)sum);
    for (size_t i = 0; i < count; i++)
        printf(" %u-%u", ranks[i].first, ranks[i].last);
    printf("\n");
    const sapwood_missing_t *missing = sapwood_answer_missing(answer, &count);
    for (size_t i = 0; i < count; i++)
        printf("without ranks %s: %s\n", missing[i].ranks, missing[i].reason);
}

static int front_end(const char *own, sapwood_error_t *error)
{
    const char *const worker[] = {own, "back-end", NULL};
    sapwood_network_options_t options = SAPWOOD_NETWORK_OPTIONS_INIT;
    sapwood_stream_options_t sum = SAPWOOD_STREAM_OPTIONS_INIT;
    options.topology = "4^2";
    options.back_end_argv = worker;
    sum.up = "sum";

    sapwood_network_t *network = NULL;
    sapwood_stream_t *stream = NULL;
    sapwood_answer_t *answer = NULL;
    const sapwood_packet_t *packet;
    int64_t value;
    int code;
    if ((code = sapwood_network_open(&network, &options, error)) == 0 &&
        (code = sapwood_stream_open(&stream, network, NULL, &sum, error)) == 0 &&
        (code = sapwood_stream_broadcast(stream, ADD, error, "%ld", (int64_t)100)) == 0 &&
        (code = sapwood_stream_recv(stream, &answer, DEADLINE_MS, error)) == 0 &&
        (code = sapwood_answer_value(answer, &packet, error)) == 0 &&
        (code = sapwood_packet_read(packet, error, "%ld", &value)) == 0)
        print_answer(answer, value);
    sapwood_answer_free(&answer);
    sapwood_stream_close(&stream, NULL);
    sapwood_network_close(&network, NULL);
    return code;
}

int main(int argc, char **argv)
{
    sapwood_error_t error;
    int is_back_end = argc > 1 && strcmp(argv[1], "back-end") == 0;
    int code = is_back_end ? back_end(&error) : front_end(argv[0], &error);
    if (code != 0)
        fprintf(stderr, "add: %s\n", error.text);
    return code != 0;
}
