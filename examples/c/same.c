/*
 * Which hosts differ, and in what? `same TOPOLOGY FILE` compares a file of all back-ends.
 *
 * Each back-end sends a checksum of its file (or why it cannot read it); the tree sorts the back-ends
 * into classes of equal ones; the front-end fetches the whole file from one representative of each
 * class. `{rank}` in FILE stands for the back-end's rank.
 */
#include <sapwood.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHECKSUM = SAPWOOD_FIRST_TAG, CONTENT, DEADLINE_MS = 10000, CLASSES_MAX = 4096 };

static void name_for(char *name, size_t size, const char *pattern, uint32_t rank)
{
    const char *mark = strstr(pattern, "{rank}");
    if (mark)
        snprintf(name, size, "%.*s%u%s", (int)(mark - pattern), pattern, rank, mark + 6);
    else
        snprintf(name, size, "%s", pattern);
}

/* The whole file, to be freed; NULL with errno when it cannot be read. */
static char *content_of(const char *name, uint32_t *length)
{
    FILE *file = fopen(name, "r");
    char *bytes = NULL;
    *length = 0;
    for (size_t read = 1; file && read > 0; *length += (uint32_t)read) {
        bytes = realloc(bytes, *length + 65536);
        read = bytes ? fread(bytes + *length, 1, 65536, file) : 0;
    }
    if (file)
        fclose(file);
    return bytes;
}

static int answer_request(sapwood_back_end_t *back_end, const sapwood_packet_t *request,
                          const char *name, sapwood_error_t *error)
{
    char text[512];
    const char *const word = text;
    uint32_t length;
    uint64_t checksum = 14695981039346656037ULL; /* FNV-1a */
    char *bytes = content_of(name, &length);

    for (uint32_t i = 0; i < length; i++)
        checksum = (checksum ^ (unsigned char)bytes[i]) * 1099511628211ULL;
    if (bytes)
        snprintf(text, sizeof text, "=%016llx", (unsigned long long)checksum);
    else
        snprintf(text, sizeof text, "%s", strerror(errno));
    uint32_t stream = sapwood_packet_stream(request);
    int code = sapwood_packet_tag(request) == CONTENT
        ? sapwood_back_end_send(back_end, stream, CONTENT, error, "%auc", bytes, length)
        : sapwood_back_end_send(back_end, stream, CHECKSUM, error, "%as", &word, (uint32_t)1);
    free(bytes);
    return code;
}

static int back_end(const char *pattern, sapwood_error_t *error)
{
    sapwood_back_end_t *back_end = NULL;
    sapwood_packet_t *request = NULL;
    char name[4096];
    int code = sapwood_back_end_attach(&back_end, error);

    name_for(name, sizeof name, pattern, sapwood_back_end_rank(back_end));
    while (code == 0 && (code = sapwood_back_end_recv(back_end, &request, -1, error)) == 0) {
        code = answer_request(back_end, request, name, error);
        sapwood_packet_free(&request);
    }
    sapwood_back_end_close(&back_end, NULL);
    return code == SAPWOOD_ERROR_ENDED ? 0 : code;
}

/* A class: a node of the tree, with how many back-ends are in it. */
struct class {
    const sapwood_sketch_node_t *node;
    uint32_t size;
};

static int larger_first(const void *a, const void *b)
{
    const struct class *left = a, *right = b;
    if (left->size != right->size)
        return left->size > right->size ? -1 : 1;
    return left->node->ranges[0].first < right->node->ranges[0].first ? -1 : 1;
}

static int print_class(sapwood_stream_t *contents, const struct class *class, int is_only,
                       sapwood_error_t *error)
{
    const char *word = class->node->name;
    uint32_t first = class->node->ranges[0].first;
    sapwood_answer_t *answer = NULL;
    const sapwood_packet_t *packet;
    const char *bytes;
    uint32_t length, lines = 0;
    int code = 0;

    printf("%u back-ends (%s", class->size, class->node->ranks);
    if (word[0] != '=') {
        printf("): %s\n", word);
    } else if ((code = sapwood_stream_send_to(contents, first, CONTENT, error, "")) == 0 &&
               (code = sapwood_stream_recv(contents, &answer, DEADLINE_MS, error)) == 0 &&
               (code = sapwood_answer_value(answer, &packet, error)) == 0 &&
               (code = sapwood_packet_read(packet, error, "%auc", &bytes, &length)) == 0) {
        for (uint32_t i = 0; i < length; i++)
            lines += bytes[i] == '\n';
        printf("): %u bytes, %u lines\n", length, lines);
        if (!is_only)
            fwrite(bytes, 1, length, stdout);
    }
    sapwood_answer_free(&answer);
    return code;
}

static int ask(sapwood_stream_t *checksums, sapwood_stream_t *contents, sapwood_error_t *error)
{
    static struct class classes[CLASSES_MAX];
    sapwood_answer_t *answer = NULL;
    sapwood_sketch_t *tree = NULL;
    const sapwood_packet_t *packet;
    const sapwood_sketch_node_t *nodes = NULL;
    size_t node_count = 0, count = 0;
    int code;
    if ((code = sapwood_stream_broadcast(checksums, CHECKSUM, error, "")) == 0 &&
        (code = sapwood_stream_recv(checksums, &answer, DEADLINE_MS, error)) == 0 &&
        (code = sapwood_answer_value(answer, &packet, error)) == 0 &&
        (code = sapwood_sketch_read(&tree, packet, error)) == 0)
        code = sapwood_sketch_nodes(tree, &nodes, &node_count, error);
    for (; count < node_count && count < CLASSES_MAX; count++) {
        const sapwood_sketch_node_t *node = &nodes[count];
        classes[count] = (struct class){.node = node};
        for (size_t i = 0; i < node->range_count; i++)
            classes[count].size += node->ranges[i].last - node->ranges[i].first + 1;
    }
    qsort(classes, count, sizeof *classes, larger_first);
    for (size_t i = 0; code == 0 && i < count; i++)
        code = print_class(contents, &classes[i], count == 1, error);
    sapwood_sketch_free(&tree);
    sapwood_answer_free(&answer);
    return code;
}

static int front_end(const char *topology, const char *const *worker, sapwood_error_t *error)
{
    sapwood_network_options_t options = SAPWOOD_NETWORK_OPTIONS_INIT;
    sapwood_stream_options_t merged = SAPWOOD_STREAM_OPTIONS_INIT;
    sapwood_stream_options_t at_once = SAPWOOD_STREAM_OPTIONS_INIT;
    options.topology = topology;
    options.back_end_argv = worker;
    merged.up = "prefix-tree";
    at_once.wave = SAPWOOD_WAVE_IMMEDIATE;

    sapwood_network_t *network = NULL;
    sapwood_stream_t *checksums = NULL, *contents = NULL;
    int code;
    if ((code = sapwood_network_open(&network, &options, error)) == 0 &&
        (code = sapwood_stream_open(&checksums, network, NULL, &merged, error)) == 0 &&
        (code = sapwood_stream_open(&contents, network, NULL, &at_once, error)) == 0)
        code = ask(checksums, contents, error);
    sapwood_stream_close(&checksums, NULL);
    sapwood_stream_close(&contents, NULL);
    sapwood_network_close(&network, NULL);
    return code;
}

int main(int argc, char **argv)
{
    sapwood_error_t error = {0, "usage: same TOPOLOGY FILE"};
    int code = SAPWOOD_ERROR_USAGE;
    if (argc == 3 && strcmp(argv[1], "back-end") == 0) {
        code = back_end(argv[2], &error);
    } else if (argc == 3) {
        const char *const worker[] = {argv[0], "back-end", argv[2], NULL};
        code = front_end(argv[1], worker, &error);
    }
    if (code != 0)
        fprintf(stderr, "same: %s\n", error.text);
    return code != 0;
}
