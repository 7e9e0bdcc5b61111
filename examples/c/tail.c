/*
 * What do the logs of all hosts say? `tail TOPOLOGY FILE [SECONDS]` follows a file on every back-end
 * and prints each line once, with the ranks that wrote it.
 *
 * Ten times a second the front-end asks for what is new; equal lines of one turn are folded on their
 * way up. `{rank}` in FILE stands for the back-end's rank. It follows until it is interrupted, or for
 * SECONDS.
 */
#include <sapwood.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A packet has at most 64 values, and each line is one; more lines come in the next turn. */
enum { LINES = SAPWOOD_FIRST_TAG, DEADLINE_MS = 10000, LINES_MAX = 60, TURN_MS = 100 };

/* The file's name for a back-end: `{rank}` is replaced by its rank. */
static void name_for(char *name, size_t size, const char *pattern, uint32_t rank)
{
    const char *mark = strstr(pattern, "{rank}");
    if (mark)
        snprintf(name, size, "%.*s%u%s", (int)(mark - pattern), pattern, rank, mark + 6);
    else
        snprintf(name, size, "%s", pattern);
}

/* Reads the complete lines behind `read`, and moves it on; a file that became shorter begins anew. */
static uint32_t new_lines(const char *name, long *read, char *lines[LINES_MAX])
{
    uint32_t count = 0;
    size_t size = 0;
    FILE *file = fopen(name, "r");
    if (!file)
        return 0;
    fseek(file, 0, SEEK_END);
    if (ftell(file) < *read)
        *read = 0;
    fseek(file, *read, SEEK_SET);
    for (ssize_t length; count < LINES_MAX; count++) {
        lines[count] = NULL;
        length = getline(&lines[count], &size, file);
        size = 0;
        if (length <= 0 || lines[count][length - 1] != '\n') {
            free(lines[count]);
            break;
        }
        lines[count][length - 1] = '\0';
        *read += length;
    }
    fclose(file);
    return count;
}

static int send_lines(sapwood_back_end_t *back_end, uint32_t stream, const char *name, long *read,
                      sapwood_error_t *error)
{
    static const uint32_t one = 1, none = 0;
    char *lines[LINES_MAX];
    const void *values[2 * LINES_MAX];
    char format[4 * LINES_MAX + 1] = "";
    uint32_t count = new_lines(name, read, lines);

    /* A line is a stack of one frame. */
    for (uint32_t i = 0; i < count; i++) {
        strcat(format, "%as ");
        values[2 * i] = &lines[i];
        values[2 * i + 1] = &one;
    }
    if (count == 0) {
        /* A back-end with nothing to say sends a stack without frames. */
        strcat(format, "%as");
        values[0] = values[1] = &none;
    }
    int code = sapwood_back_end_send_values(back_end, stream, LINES, format, values,
                                            count == 0 ? 2 : 2 * count, error);
    for (uint32_t i = 0; i < count; i++)
        free(lines[i]);
    return code;
}

static int back_end(const char *pattern, sapwood_error_t *error)
{
    sapwood_back_end_t *back_end = NULL;
    sapwood_packet_t *request = NULL;
    char name[4096];
    long read = 0;
    int code = sapwood_back_end_attach(&back_end, error);

    name_for(name, sizeof name, pattern, sapwood_back_end_rank(back_end));
    while (code == 0 && (code = sapwood_back_end_recv(back_end, &request, -1, error)) == 0) {
        code = send_lines(back_end, sapwood_packet_stream(request), name, &read, error);
        sapwood_packet_free(&request);
    }
    sapwood_back_end_close(&back_end, NULL);
    return code == SAPWOOD_ERROR_ENDED ? 0 : code;
}

static int print_turn(sapwood_stream_t *stream, sapwood_error_t *error)
{
    sapwood_answer_t *answer = NULL;
    sapwood_sketch_t *tree = NULL;
    const sapwood_packet_t *packet;
    const sapwood_sketch_node_t *lines = NULL;
    size_t count = 0;
    int code;
    if ((code = sapwood_stream_broadcast(stream, LINES, error, "")) == 0 &&
        (code = sapwood_stream_recv(stream, &answer, DEADLINE_MS, error)) == 0 &&
        (code = sapwood_answer_value(answer, &packet, error)) == 0 &&
        (code = sapwood_sketch_read(&tree, packet, error)) == 0)
        code = sapwood_sketch_nodes(tree, &lines, &count, error);
    for (size_t line = 0; line < count; line++)
        printf("%s: %s\n", lines[line].ranks, lines[line].name);
    fflush(stdout);
    sapwood_sketch_free(&tree);
    sapwood_answer_free(&answer);
    return code;
}

static int front_end(const char *topology, const char *const *worker, long turns,
                     sapwood_error_t *error)
{
    const struct timespec turn = {0, TURN_MS * 1000000L};
    sapwood_network_options_t options = SAPWOOD_NETWORK_OPTIONS_INIT;
    sapwood_stream_options_t merged = SAPWOOD_STREAM_OPTIONS_INIT;
    options.topology = topology;
    options.back_end_argv = worker;
    merged.up = "prefix-tree";

    sapwood_network_t *network = NULL;
    sapwood_stream_t *stream = NULL;
    int code = sapwood_network_open(&network, &options, error);
    if (code == 0)
        code = sapwood_stream_open(&stream, network, NULL, &merged, error);
    for (long i = 0; code == 0 && (turns < 0 || i < turns); i++) {
        code = print_turn(stream, error);
        nanosleep(&turn, NULL);
    }
    sapwood_stream_close(&stream, NULL);
    sapwood_network_close(&network, NULL);
    return code;
}

int main(int argc, char **argv)
{
    sapwood_error_t error = {0, "usage: tail TOPOLOGY FILE [SECONDS]"};
    int code = SAPWOOD_ERROR_USAGE;
    if (argc == 3 && strcmp(argv[1], "back-end") == 0) {
        code = back_end(argv[2], &error);
    } else if (argc == 3 || argc == 4) {
        const char *const worker[] = {argv[0], "back-end", argv[2], NULL};
        long turns = argc == 4 ? atol(argv[3]) * (1000 / TURN_MS) : -1;
        code = front_end(argv[1], worker, turns, &error);
    }
    if (code != 0)
        fprintf(stderr, "tail: %s\n", error.text);
    return code != 0;
}
