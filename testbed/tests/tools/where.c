/*
 * Where a tree's back-ends are: `where NODESET [LAUNCHER [SHELL...]]` prints the name of every back-end's host.
 */
#include <sapwood.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WHERE = SAPWOOD_FIRST_TAG, DEADLINE_MS = 30000 };

static int back_end(sapwood_error_t *error)
{
    char host[256] = "";
    sapwood_back_end_t *back_end = NULL;
    sapwood_packet_t *request = NULL;
    int code = sapwood_back_end_attach(&back_end, error);
    gethostname(host, sizeof host - 1);
    while (code == 0 && (code = sapwood_back_end_recv(back_end, &request, -1, error)) == 0) {
        code = sapwood_back_end_send(back_end, sapwood_packet_stream(request), WHERE, error, "%s", host);
        sapwood_packet_free(&request);
    }
    sapwood_back_end_close(&back_end, NULL);
    return code == SAPWOOD_ERROR_ENDED ? 0 : code;
}

static int front_end(char **argv, sapwood_error_t *error)
{
    const char *const worker[] = {argv[0], "back-end", NULL};
    const char *const prefix[] = {"nice", "-n", "1", NULL};
    sapwood_network_options_t options = SAPWOOD_NETWORK_OPTIONS_INIT;
    sapwood_stream_options_t up = SAPWOOD_STREAM_OPTIONS_INIT;
    options.hosts = argv[1];
    options.launcher = argv[2];
    options.remote_shell = argv[2] && argv[3] ? (const char *const *)argv + 3 : NULL;
    options.remote_prefix = prefix;
    /* Many log-ins of one machine take their time. */
    options.connect_timeout_ms = 60000;
    options.back_end_argv = worker;
    up.up = "concatenate";

    sapwood_network_t *network = NULL;
    sapwood_stream_t *stream = NULL;
    sapwood_answer_t *answer = NULL;
    const sapwood_packet_t *packet;
    const char *const *names = NULL;
    const uint32_t *ranks = NULL;
    uint64_t count = 0;
    uint32_t rank_count = 0;
    int code;
    if ((code = sapwood_network_open(&network, &options, error)) == 0 &&
        (code = sapwood_stream_open(&stream, network, NULL, &up, error)) == 0 &&
        (code = sapwood_stream_broadcast(stream, WHERE, error, "")) == 0 &&
        (code = sapwood_stream_recv(stream, &answer, DEADLINE_MS, error)) == 0 &&
        (code = sapwood_answer_value(answer, &packet, error)) == 0 &&
        (code = sapwood_packet_read(packet, error, "%As %aud", &names, &count, &ranks,
                                    &rank_count)) == 0)
        for (uint64_t i = 0; i < count; i++)
            puts(names[i]);
    sapwood_answer_free(&answer);
    sapwood_stream_close(&stream, NULL);
    sapwood_network_close(&network, NULL);
    return code;
}

int main(int argc, char **argv)
{
    sapwood_error_t error;
    int is_back_end = argc == 2 && strcmp(argv[1], "back-end") == 0;
    if (argc < 2)
        return 2;
    int code = is_back_end ? back_end(&error) : front_end(argv, &error);
    if (code != 0)
        fprintf(stderr, "where: %s\n", error.text);
    return code != 0;
}
