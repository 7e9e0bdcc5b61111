/*
 * Where is each process? `stacks TOPOLOGY PID...` draws the stacks of many processes as one tree.
 *
 * Each back-end looks at one process, thread by thread, as the kernel sees it (/proc/PID/stack, which
 * root may read; for others the name of the call in which the thread waits). The tree merges stacks
 * that begin alike.
 */
#include <sapwood.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STACKS = SAPWOOD_FIRST_TAG, DEADLINE_MS = 10000, THREADS_MAX = 60, FRAMES_MAX = 64 };

/* One thread's frames, the outermost first, with what they are written in. */
struct stack {
    char text[4096], name[64];
    const char *frames[FRAMES_MAX];
    const char *const *array;
    uint32_t count;
};

static void read_line_or_all(const char *pid, const char *thread, const char *name, char *text,
                             size_t size)
{
    char path[300];
    snprintf(path, sizeof path, "/proc/%s/task/%s/%s", pid, thread, name);
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, size - 1, file) : 0;
    text[length] = '\0';
    if (file)
        fclose(file);
}

static void read_stack(struct stack *stack, const char *pid, const char *thread)
{
    char *lines[FRAMES_MAX];
    int count = 0;
    read_line_or_all(pid, thread, "comm", stack->name, sizeof stack->name);
    stack->name[strcspn(stack->name, "\n")] = '\0';
    stack->frames[0] = stack->name;
    stack->count = 1;
    /* One frame a line, the innermost first: "[<0>] do_epoll_wait+0x60/0x1b0". */
    read_line_or_all(pid, thread, "stack", stack->text, sizeof stack->text);
    for (char *line = strtok(stack->text, "\n"); line && count < FRAMES_MAX - 1;
         line = strtok(NULL, "\n"))
        if ((line = strchr(line, ' ')) != NULL) {
            line[strcspn(line, "+")] = '\0';
            lines[count++] = line + 1;
        }
    while (count > 0)
        stack->frames[stack->count++] = lines[--count];
    if (stack->count == 1) {
        read_line_or_all(pid, thread, "wchan", stack->text, sizeof stack->text);
        int is_running = stack->text[0] == '\0' || strcmp(stack->text, "0") == 0;
        stack->frames[stack->count++] = is_running ? "(running)" : stack->text;
    }
    stack->array = stack->frames;
}

static int send_stacks(sapwood_back_end_t *back_end, uint32_t stream, const char *pid,
                       sapwood_error_t *error)
{
    static struct stack stacks[THREADS_MAX];
    const void *values[2 * THREADS_MAX];
    char format[4 * THREADS_MAX + 1] = "", path[64];
    int count = 0;

    snprintf(path, sizeof path, "/proc/%s/task", pid);
    DIR *threads = opendir(path);
    for (struct dirent *thread; threads && count < THREADS_MAX && (thread = readdir(threads));)
        if (thread->d_name[0] != '.')
            read_stack(&stacks[count++], pid, thread->d_name);
    if (threads)
        closedir(threads);
    if (count == 0) {
        stacks[0] = (struct stack){.frames = {"(no such process)"}, .count = 1};
        count = 1;
    }
    for (int i = 0; i < count; i++) {
        strcat(format, "%as ");
        values[2 * i] = stacks[i].frames;
        values[2 * i + 1] = &stacks[i].count;
    }
    return sapwood_back_end_send_values(back_end, stream, STACKS, format, values, 2 * (size_t)count,
                                        error);
}

static int back_end(char **pids, sapwood_error_t *error)
{
    sapwood_back_end_t *back_end = NULL;
    sapwood_packet_t *request = NULL;
    int code = sapwood_back_end_attach(&back_end, error);

    while (code == 0 && (code = sapwood_back_end_recv(back_end, &request, -1, error)) == 0) {
        code = send_stacks(back_end, sapwood_packet_stream(request),
                           pids[sapwood_back_end_rank(back_end)], error);
        sapwood_packet_free(&request);
    }
    sapwood_back_end_close(&back_end, NULL);
    return code == SAPWOOD_ERROR_ENDED ? 0 : code;
}

static int front_end(const char *topology, const char *const *worker, unsigned pids,
                     sapwood_error_t *error)
{
    sapwood_network_options_t options = SAPWOOD_NETWORK_OPTIONS_INIT;
    sapwood_stream_options_t merged = SAPWOOD_STREAM_OPTIONS_INIT;
    options.topology = topology;
    options.back_end_argv = worker;
    merged.up = "prefix-tree";

    sapwood_network_t *network = NULL;
    sapwood_communicator_t *everyone = NULL;
    sapwood_stream_t *stream = NULL;
    sapwood_answer_t *answer = NULL;
    sapwood_sketch_t *tree = NULL;
    const sapwood_packet_t *packet;
    int code;
    if ((code = sapwood_network_open(&network, &options, error)) == 0 &&
        (code = sapwood_communicator_everyone(&everyone, network, error)) == 0 &&
        sapwood_communicator_size(everyone) != pids) {
        snprintf(error->text, sizeof error->text, "%llu back-ends cannot look at %u processes",
                 (unsigned long long)sapwood_communicator_size(everyone), pids);
        code = SAPWOOD_ERROR_USAGE;
    } else if (code == 0 &&
               (code = sapwood_stream_open(&stream, network, NULL, &merged, error)) == 0 &&
               (code = sapwood_stream_broadcast(stream, STACKS, error, "")) == 0 &&
               (code = sapwood_stream_recv(stream, &answer, DEADLINE_MS, error)) == 0 &&
               (code = sapwood_answer_value(answer, &packet, error)) == 0 &&
               (code = sapwood_sketch_read(&tree, packet, error)) == 0) {
        printf("%s", sapwood_sketch_text(tree));
    }
    sapwood_sketch_free(&tree);
    sapwood_answer_free(&answer);
    sapwood_stream_close(&stream, NULL);
    sapwood_communicator_free(&everyone);
    sapwood_network_close(&network, NULL);
    return code;
}

int main(int argc, char **argv)
{
    sapwood_error_t error = {0, "usage: stacks TOPOLOGY PID..., with one PID for each back-end"};
    int code = SAPWOOD_ERROR_USAGE;
    if (argc > 2 && strcmp(argv[1], "back-end") == 0) {
        code = back_end(argv + 2, &error);
    } else if (argc > 2) {
        /* The back-ends' command line is this one, with their role in the place of the topology. */
        const char *topology = argv[1];
        argv[1] = "back-end";
        code = front_end(topology, (const char *const *)argv, (unsigned)argc - 2, &error);
    }
    if (code != 0)
        fprintf(stderr, "stacks: %s\n", error.text);
    return code != 0;
}
