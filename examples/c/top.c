/*
 * Which of all hosts have the most? `top TOPOLOGY K COMMAND` runs a command on every back-end and
 * prints the K largest of the numbers with which its lines begin.
 *
 * The tree finds the numbers and the ranks that have them; only those back-ends are then asked for the lines.
 * `{rank}` in COMMAND stands for the back-end's rank.
 */
#include <sapwood.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = SAPWOOD_FIRST_TAG, LINE, DEADLINE_MS = 60000, LINES_MAX = 100000 };

/* The lines of the command's output that begin with a number. */
struct lines {
    double numbers[LINES_MAX];
    char *texts[LINES_MAX];
    uint32_t count;
};

static void run_command(struct lines *lines, const char *pattern, uint32_t rank)
{
    char command[4096];
    const char *mark = strstr(pattern, "{rank}");
    if (mark)
        snprintf(command, sizeof command, "%.*s%u%s", (int)(mark - pattern), pattern, rank, mark + 6);
    else
        snprintf(command, sizeof command, "%s", pattern);

    FILE *output = popen(command, "r");
    char *line = NULL;
    size_t size = 0;
    while (lines->count > 0)
        free(lines->texts[--lines->count]);
    while (output && lines->count < LINES_MAX && getline(&line, &size, output) > 0) {
        char *end;
        lines->numbers[lines->count] = strtod(line, &end);
        line[strcspn(line, "\n")] = '\0';
        if (end != line)
            lines->texts[lines->count++] = strdup(line + strspn(line, " "));
    }
    free(line);
    if (output)
        pclose(output);
}

static int answer_request(sapwood_back_end_t *back_end, const sapwood_packet_t *request,
                          struct lines *lines, const char *command, sapwood_error_t *error)
{
    uint32_t stream = sapwood_packet_stream(request);
    double number;
    if (sapwood_packet_tag(request) == NUMBERS) {
        run_command(lines, command, sapwood_back_end_rank(back_end));
        return sapwood_back_end_send(back_end, stream, NUMBERS, error, "%alf", lines->numbers,
                                     lines->count);
    }
    int code = sapwood_packet_read(request, error, "%lf", &number);
    uint32_t at = 0;
    while (at < lines->count && lines->numbers[at] != number)
        at++;
    if (code == 0)
        code = sapwood_back_end_send(back_end, stream, LINE, error, "%s",
                                     at < lines->count ? lines->texts[at] : "");
    return code;
}

static int back_end(const char *command, sapwood_error_t *error)
{
    static struct lines lines;
    sapwood_back_end_t *back_end = NULL;
    sapwood_packet_t *request = NULL;
    int code = sapwood_back_end_attach(&back_end, error);

    while (code == 0 && (code = sapwood_back_end_recv(back_end, &request, -1, error)) == 0) {
        code = answer_request(back_end, request, &lines, command, error);
        sapwood_packet_free(&request);
    }
    sapwood_back_end_close(&back_end, NULL);
    return code == SAPWOOD_ERROR_ENDED ? 0 : code;
}

/* Asks one of those that have a number for the line that begins with it. */
static int print_entry(sapwood_stream_t *lines, const sapwood_sketch_entry_t *entry,
                       sapwood_error_t *error)
{
    sapwood_answer_t *answer = NULL;
    const sapwood_packet_t *packet;
    const char *line;
    int code;
    if ((code = sapwood_stream_send_to(lines, entry->ranges[0].first, LINE, error, "%lf",
                                       entry->number)) == 0 &&
        (code = sapwood_stream_recv(lines, &answer, DEADLINE_MS, error)) == 0 &&
        (code = sapwood_answer_value(answer, &packet, error)) == 0 &&
        (code = sapwood_packet_read(packet, error, "%s", &line)) == 0)
        printf("%s: %s\n", entry->ranks, line);
    sapwood_answer_free(&answer);
    return code;
}

static int ask(sapwood_stream_t *numbers, sapwood_stream_t *lines, sapwood_error_t *error)
{
    sapwood_answer_t *answer = NULL;
    sapwood_sketch_t *top = NULL;
    const sapwood_packet_t *packet;
    const sapwood_sketch_entry_t *entries = NULL;
    size_t count = 0;
    int code;
    if ((code = sapwood_stream_broadcast(numbers, NUMBERS, error, "")) == 0 &&
        (code = sapwood_stream_recv(numbers, &answer, DEADLINE_MS, error)) == 0 &&
        (code = sapwood_answer_value(answer, &packet, error)) == 0 &&
        (code = sapwood_sketch_read(&top, packet, error)) == 0)
        code = sapwood_sketch_entries(top, &entries, &count, error);
    for (size_t i = 0; code == 0 && i < count; i++)
        code = print_entry(lines, &entries[i], error);
    sapwood_sketch_free(&top);
    sapwood_answer_free(&answer);
    return code;
}

static int front_end(const char *topology, const char *k, const char *const *worker,
                     sapwood_error_t *error)
{
    sapwood_network_options_t options = SAPWOOD_NETWORK_OPTIONS_INIT;
    sapwood_stream_options_t largest = SAPWOOD_STREAM_OPTIONS_INIT;
    sapwood_stream_options_t at_once = SAPWOOD_STREAM_OPTIONS_INIT;
    char filter[64];
    snprintf(filter, sizeof filter, "top(%s)", k);
    options.topology = topology;
    options.back_end_argv = worker;
    largest.up = filter;
    at_once.wave = SAPWOOD_WAVE_IMMEDIATE;

    sapwood_network_t *network = NULL;
    sapwood_stream_t *numbers = NULL, *lines = NULL;
    int code;
    if ((code = sapwood_network_open(&network, &options, error)) == 0 &&
        (code = sapwood_stream_open(&numbers, network, NULL, &largest, error)) == 0 &&
        (code = sapwood_stream_open(&lines, network, NULL, &at_once, error)) == 0)
        code = ask(numbers, lines, error);
    sapwood_stream_close(&numbers, NULL);
    sapwood_stream_close(&lines, NULL);
    sapwood_network_close(&network, NULL);
    return code;
}

int main(int argc, char **argv)
{
    sapwood_error_t error = {0, "usage: top TOPOLOGY K COMMAND"};
    int code = SAPWOOD_ERROR_USAGE;
    if (argc == 3 && strcmp(argv[1], "back-end") == 0) {
        code = back_end(argv[2], &error);
    } else if (argc == 4) {
        const char *const worker[] = {argv[0], "back-end", argv[3], NULL};
        code = front_end(argv[1], argv[2], worker, &error);
    }
    if (code != 0)
        fprintf(stderr, "top: %s\n", error.text);
    return code != 0;
}
