/*
 * wrong_use PROGRAM [back-end]: handles that were closed, in a forked child and on another thread, at the
 * front-end and at its back-end, each a status code of its own kind; and the network goes on.
 */
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WAVES = 200 };

static sapwood_network_t *network;
static sapwood_stream_t *stream;
static sapwood_back_end_t *back_end;
static sapwood_error_t error;

/* Copies of closed handles, and the NULL that closing has left. */
static void after_close(void)
{
    sapwood_stream_t *closed = NULL;
    sapwood_answer_t *answer = NULL;
    OK(sapwood_stream_open(&closed, network, NULL, NULL, &error));
    sapwood_stream_t *copy = closed;
    OK(sapwood_stream_close(&closed, &error));
    CHECK(closed == NULL);
    REFUSED(sapwood_stream_broadcast(closed, 100, &error, "%d", 1), USAGE, "the handle is NULL");
    REFUSED(sapwood_stream_broadcast(copy, 100, &error, "%d", 1), USAGE, "was closed");
    REFUSED(sapwood_stream_recv(copy, &answer, 0, &error), USAGE, "was closed");
    REFUSED(sapwood_stream_try_recv(copy, &answer, &error), USAGE, "was closed");
    REFUSED(sapwood_stream_send_to(copy, 0, 100, &error, "%d", 1), USAGE, "was closed");
    REFUSED(sapwood_stream_close(&copy, &error), USAGE, "was closed");
    CHECK(answer == NULL && sapwood_stream_id(copy) == 0 && sapwood_stream_dropped(copy) == 0);
}

static void after_the_network(sapwood_network_t *copy, sapwood_stream_t *of_stream)
{
    sapwood_communicator_t *everyone = NULL;
    sapwood_event_t event;
    sapwood_stream_t *none = NULL;
    REFUSED(sapwood_network_flush(copy, &error), USAGE, "was closed");
    REFUSED(sapwood_network_turn(copy, 0, &error), USAGE, "was closed");
    REFUSED(sapwood_network_next_event(copy, &event, &error), USAGE, "was closed");
    REFUSED(sapwood_network_wait_for_back_ends(copy, 1, 0, &error), USAGE, "was closed");
    REFUSED(sapwood_communicator_everyone(&everyone, copy, &error), USAGE, "was closed");
    REFUSED(sapwood_stream_open(&none, copy, NULL, NULL, &error), USAGE, "was closed");
    REFUSED(sapwood_network_close(&copy, &error), USAGE, "was closed");
    CHECK(sapwood_network_size(copy) == 0 && sapwood_network_descriptor(copy) == -1);
    CHECK(sapwood_network_attach_points(copy) == NULL && none == NULL && everyone == NULL);
    REFUSED(sapwood_stream_broadcast(of_stream, 100, &error, "%d", 1), USAGE, "was closed");
}

/* A child may read and free what is plain memory, and nothing else; its exit harms no other process. */
static void in_a_forked_child(const sapwood_answer_t *lent)
{
    int status = 1;
    pid_t child = fork();
    if (child == 0) {
        sapwood_answer_t *answer = NULL;
        sapwood_communicator_t *everyone = NULL;
        sapwood_stream_t *none = NULL;
        sapwood_event_t event;
        const sapwood_packet_t *packet = NULL;
        int32_t sum = 0;
        REFUSED(sapwood_stream_broadcast(stream, 100, &error, "%d", 1), FORKED, "forked");
        REFUSED(sapwood_stream_send_to(stream, 0, 100, &error, "%d", 1), FORKED, "forked");
        REFUSED(sapwood_stream_recv(stream, &answer, 0, &error), FORKED, "forked");
        REFUSED(sapwood_stream_try_recv(stream, &answer, &error), FORKED, "forked");
        REFUSED(sapwood_stream_open(&none, network, NULL, NULL, &error), FORKED, "forked");
        REFUSED(sapwood_network_turn(network, 0, &error), FORKED, "forked");
        REFUSED(sapwood_network_flush(network, &error), FORKED, "forked");
        REFUSED(sapwood_network_next_event(network, &event, &error), FORKED, "forked");
        REFUSED(sapwood_network_wait_for_back_ends(network, 1, 0, &error), FORKED, "forked");
        REFUSED(sapwood_communicator_everyone(&everyone, network, &error), FORKED, "forked");
        CHECK(sapwood_network_size(network) == 0 && sapwood_network_descriptor(network) == -1);
        CHECK(sapwood_stream_id(stream) == 0 && answer == NULL && none == NULL);
        REFUSED(sapwood_stream_close(&stream, &error), FORKED, "forked");
        REFUSED(sapwood_network_close(&network, &error), FORKED, "forked");
        CHECK(stream != NULL && network != NULL);
        OK(sapwood_answer_value(lent, &packet, &error));
        OK(sapwood_packet_read(packet, &error, "%d", &sum));
        CHECK(sum == 1);
        exit(0); /* with what the parent has to do at its exit */
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

static atomic_int goes_on = 1;
static atomic_long refused;

/* Uses the stream as long as the main thread does. */
static void *intrude(void *nothing)
{
    sapwood_error_t mine;
    sapwood_answer_t *answer = NULL;
    do {
        sapwood_stream_t *copy = stream;
        int codes[] = {
            sapwood_stream_broadcast(stream, TAG_RANK, &mine, "%d", 77),
            sapwood_stream_recv(stream, &answer, 0, &mine),
            sapwood_stream_try_recv(stream, &answer, &mine),
            sapwood_stream_close(&copy, &mine),
            sapwood_network_flush(network, &mine),
        };
        for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
            CHECK(codes[i] == SAPWOOD_ERROR_THREAD);
        CHECK(answer == NULL && copy == stream && strstr(mine.text, "another thread"));
        CHECK(sapwood_stream_id(stream) == 0 && sapwood_network_size(network) == 0);
        atomic_fetch_add(&refused, 1);
    } while (atomic_load(&goes_on));
    return nothing;
}

static sapwood_answer_t *one_wave(int32_t wave)
{
    sapwood_answer_t *answer = NULL;
    const sapwood_packet_t *packet = NULL;
    int32_t sum = 0;
    OK(sapwood_stream_broadcast(stream, TAG_RANK, &error, "%d", wave));
    OK(sapwood_stream_recv(stream, &answer, HANG_MS, &error));
    OK(sapwood_answer_value(answer, &packet, &error));
    OK(sapwood_packet_read(packet, &error, "%d", &sum));
    CHECK(sum == 2 * wave + 1 && sapwood_answer_is_complete(answer));
    return answer;
}

static void two_threads_in_one_stream(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, intrude, NULL) == 0);
    for (int32_t wave = 0; wave < WAVES; wave++) {
        sapwood_answer_t *answer = one_wave(wave);
        sapwood_answer_free(&answer);
    }
    while (atomic_load(&refused) == 0)
        sched_yield();
    atomic_store(&goes_on, 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

/* Hosts, and how they are reached. */
static void places_that_are_none(const char *const *program)
{
    sapwood_network_options_t options = SAPWOOD_NETWORK_OPTIONS_INIT;
    options.back_end_argv = program;
    REFUSED(sapwood_network_open(&network, &options, &error), USAGE, "one of topology");
    options.hosts = "elsewhere[1-";
    REFUSED(sapwood_network_open(&network, &options, &error), TOPOLOGY, "elsewhere[1-");
    options.hosts = "elsewhere[1-3]";
    options.topology = "2";
    REFUSED(sapwood_network_open(&network, &options, &error), TOPOLOGY, "3 hosts");
    options.topology = NULL;
    options.topology_file_text = "a:0 => b:0 ;";
    REFUSED(sapwood_network_open(&network, &options, &error), USAGE, "give one of both");
    options.topology_file_text = NULL;
    options.launcher = "rsh";
    REFUSED(sapwood_network_open(&network, &options, &error), USAGE, "no launcher 'rsh'");
    options.launcher = "attach";
    REFUSED(sapwood_network_open(&network, &options, &error), USAGE, "attach file");
    options.launcher = "ssh";
    options.connect_timeout_ms = -5;
    REFUSED(sapwood_network_open(&network, &options, &error), USAGE, "-5");
}

static int front_end(char **argv)
{
    const char *const program[] = {argv[1], argv[1], "back-end", NULL};
    sapwood_network_options_t options = SAPWOOD_NETWORK_OPTIONS_INIT;
    sapwood_stream_options_t sum = SAPWOOD_STREAM_OPTIONS_INIT;
    places_that_are_none(program);
    options.topology = "2";
    options.back_end_argv = program;
    options.startup_timeout_ms = HANG_MS;
    sum.up = "sum";
    OK(sapwood_network_open(&network, &options, &error));
    OK(sapwood_stream_open(&stream, network, NULL, &sum, &error));
    after_close();
    sapwood_answer_t *answer = one_wave(0);
    in_a_forked_child(answer);
    sapwood_answer_free(&answer);
    two_threads_in_one_stream();
    sapwood_stream_t *of_stream = stream;
    sapwood_network_t *of_network = network;
    OK(sapwood_stream_close(&stream, &error));
    OK(sapwood_network_close(&network, &error));
    after_the_network(of_network, of_stream);
    return 0;
}

static void *back_end_on_another_thread(void *nothing)
{
    sapwood_error_t mine;
    sapwood_packet_t *packet = NULL;
    CHECK(sapwood_back_end_recv(back_end, &packet, 0, &mine) == SAPWOOD_ERROR_THREAD);
    CHECK(sapwood_back_end_send(back_end, 1, 100, &mine, "%d", 1) == SAPWOOD_ERROR_THREAD);
    CHECK(sapwood_back_end_close(&back_end, &mine) == SAPWOOD_ERROR_THREAD);
    CHECK(sapwood_back_end_rank(back_end) == UINT32_MAX && sapwood_back_end_descriptor(back_end) == -1);
    return nothing;
}

static void back_end_in_a_forked_child(void)
{
    int status = 1;
    pid_t child = fork();
    if (child == 0) {
        sapwood_packet_t *packet = NULL;
        uint32_t number;
        REFUSED(sapwood_back_end_recv(back_end, &packet, 0, &error), FORKED, "forked");
        REFUSED(sapwood_back_end_try_recv(back_end, &packet, &error), FORKED, "forked");
        REFUSED(sapwood_back_end_send(back_end, 1, 100, &error, "%d", 1), FORKED, "forked");
        REFUSED(sapwood_back_end_flush(back_end, &error), FORKED, "forked");
        REFUSED(sapwood_back_end_turn(back_end, 0, &error), FORKED, "forked");
        REFUSED(sapwood_back_end_wait_for_stream(back_end, &number, 0, &error), FORKED, "forked");
        REFUSED(sapwood_back_end_close(&back_end, &error), FORKED, "forked");
        CHECK(sapwood_back_end_has_ended(back_end) && back_end != NULL);
        exit(0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

static int be_a_back_end(void)
{
    pthread_t thread;
    int code;
    OK(sapwood_back_end_attach(&back_end, &error));
    CHECK(pthread_create(&thread, NULL, back_end_on_another_thread, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    back_end_in_a_forked_child();
    sapwood_packet_t *packet = NULL;
    while ((code = sapwood_back_end_recv(back_end, &packet, -1, &error)) == 0) {
        int32_t wave;
        OK(sapwood_packet_read(packet, &error, "%d", &wave));
        OK(sapwood_back_end_send(back_end, sapwood_packet_stream(packet), TAG_RANK, &error, "%d",
                                 wave + (int32_t)sapwood_back_end_rank(back_end)));
        sapwood_packet_free(&packet);
    }
    CHECK(code == SAPWOOD_ERROR_ENDED);
    sapwood_back_end_t *copy = back_end;
    OK(sapwood_back_end_close(&back_end, &error));
    REFUSED(sapwood_back_end_recv(back_end, &packet, 0, &error), USAGE, "the handle is NULL");
    REFUSED(sapwood_back_end_recv(copy, &packet, 0, &error), USAGE, "was closed");
    REFUSED(sapwood_back_end_send(copy, 1, 100, &error, "%d", 1), USAGE, "was closed");
    REFUSED(sapwood_back_end_close(&copy, &error), USAGE, "was closed");
    CHECK(sapwood_back_end_rank(copy) == UINT32_MAX && sapwood_back_end_has_ended(copy));
    return 0;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2 || argc == 3);
    return argc == 3 ? be_a_back_end() : front_end(argv);
}
