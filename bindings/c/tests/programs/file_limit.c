/*
 * file_limit BACK_END LIBRARY: a program whose files may not grow (ulimit -f) lives on, whatever the library has no
 * room for, and its own answer to SIGXFSZ stays. LIBRARY has filters and is larger than a file may be. Back-ends and
 * communication processes have the same limit.
 */
#include "check.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void answer_to_signal(int);

enum { LIMIT_BYTES = 4096 };

static sapwood_network_t *network;
static sapwood_error_t error;
static volatile sig_atomic_t signals;

static void count_signal(int number)
{
    (void)number;
    signals++;
}

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = bytes;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

static void set_answer(answer_to_signal *answer)
{
    struct sigaction set = {.sa_handler = answer};
    CHECK(sigaction(SIGXFSZ, &set, NULL) == 0);
}

static void check_answer(answer_to_signal *answer)
{
    struct sigaction now;
    CHECK(sigaction(SIGXFSZ, NULL, &now) == 0 && now.sa_handler == answer && signals == 0);
}

static int open_network(char **argv)
{
    const char *const back_end[] = {argv[1], NULL};
    sapwood_network_options_t options = SAPWOOD_NETWORK_OPTIONS_INIT;
    options.topology = "1x4";
    options.back_end_argv = back_end;
    return sapwood_network_open(&network, &options, &error);
}

static void sum_over_everyone(void)
{
    sapwood_stream_options_t options = SAPWOOD_STREAM_OPTIONS_INIT;
    sapwood_stream_t *stream = NULL;
    sapwood_answer_t *answer = NULL;
    const sapwood_packet_t *packet = NULL;
    int32_t sum = 0;
    options.up = "sum";
    OK(sapwood_stream_open(&stream, network, NULL, &options, &error));
    OK(sapwood_stream_broadcast(stream, TAG_RANK, &error, "%d", 10));
    OK(sapwood_stream_recv(stream, &answer, HANG_MS, &error));
    OK(sapwood_answer_value(answer, &packet, &error));
    OK(sapwood_packet_read(packet, &error, "%d", &sum));
    CHECK(sum == 46 && sapwood_answer_is_complete(answer));
    sapwood_answer_free(&answer);
    OK(sapwood_stream_close(&stream, &error));
}

/* No shared memory and no copy of a file of filters has room; sockets and what fits go on. */
static void lives_with_little(char **argv, answer_to_signal *answer)
{
    const char *name = NULL;
    set_answer(answer);
    limit_files(LIMIT_BYTES);
    OK(open_network(argv));
    sum_over_everyone();
    CHECK(sapwood_network_ship(network, argv[2], "add", &name, &error) != SAPWOOD_OK);
    CHECK(strstr(error.text, "File too large"));
    sum_over_everyone();
    OK(sapwood_network_close(&network, &error));
    check_answer(answer);
}

/* Not even a key has room, so that there is no network. */
static void lives_with_nothing(char **argv, answer_to_signal *answer)
{
    set_answer(answer);
    limit_files(0);
    CHECK(open_network(argv) != SAPWOOD_OK && network == NULL);
    CHECK(strstr(error.text, "File too large"));
    check_answer(answer);
}

/* The limit holds: a write of the program itself ends it. */
static void a_write_of_its_own_is_the_end(void)
{
    int status = 0;
    set_answer(SIG_DFL);
    limit_files(LIMIT_BYTES);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        static const char bytes[LIMIT_BYTES];
        struct rlimit none = {0, 0};
        CHECK(setrlimit(RLIMIT_CORE, &none) == 0);
        FILE *file = tmpfile();
        CHECK(file != NULL);
        for (int at = 0; at < 2; at++)
            CHECK(write(fileno(file), bytes, sizeof bytes) == (ssize_t)sizeof bytes);
        _exit(9);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
}

int main(int argc, char **argv)
{
    answer_to_signal *const answers[] = {SIG_DFL, SIG_IGN, count_signal};
    CHECK(argc == 3);
    for (int at = 0; at < 3; at++) {
        lives_with_little(argv, answers[at]);
        lives_with_nothing(argv, answers[at]);
    }
    a_write_of_its_own_is_the_end();
    return 0;
}
