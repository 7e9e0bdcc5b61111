/* A rank of the tool: what it starts, and how it sleeps; see world.h. */
#define _GNU_SOURCE
#include "world.h"

#include <assert.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "say.h"

enum {
    ARGUMENTS_MAX = 64,
    FIRST_PAUSE_MS = 1,
    LAST_PAUSE_MS = 50,
};

/* Where the command finds the join file and its key, if it is given these. */
enum { POINTS_FD = STDERR_FILENO + 1, KEY_FD };
#define POINTS_PATH "/proc/self/fd/3"
static_assert(POINTS_FD == 3 && KEY_FD == SAPWOOD_WORLD_KEY_FD, "paths of descriptors");

extern char **environ;

static void sleep_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* Takes a command apart, in place. */
static void split(char *command, char *arguments[ARGUMENTS_MAX + 1])
{
    int count = 0;
    for (char *word = command; word != NULL && count < ARGUMENTS_MAX;) {
        char *end = strchr(word, SAPWOOD_WORLD_DIVIDER);
        if (end != NULL)
            *end++ = '\0';
        arguments[count++] = word;
        word = end;
    }
    arguments[count] = NULL;
}

/* Starts the command of a tool rank. It has a session and no descriptor of the rank:
 * launchers wait for the end of whatever holds a rank's output. A join file is given by
 * descriptors, so that its key is in no variable and on no disk of this host. */
static void start_command(const struct sapwood_world_tool *tool, const struct sapwood_world_join *join)
{
    char *command = getenv("SAPWOOD_MPI_WORLD_COMMAND");
    if (command == NULL || *command == '\0')
        return;
    char *arguments[ARGUMENTS_MAX + 1], number[12];
    /* The environment of this rank serves nothing else from here on. */
    split(command, arguments);
    snprintf(number, sizeof number, "%d", tool->leaf);
    setenv("SAPWOOD_RANK", number, true);
    snprintf(number, sizeof number, "%d", tool->on_host);
    setenv("SAPWOOD_MPI_LEAF", number, true);
    snprintf(number, sizeof number, "%d", (int)getpid());
    setenv("SAPWOOD_MPI_WORLD_PROCESS", number, true);
    /* It is no MPI program. */
    unsetenv("LD_PRELOAD");
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (join != NULL) {
        setenv("SAPWOOD_JOIN", POINTS_PATH, true);
        posix_spawn_file_actions_adddup2(&actions, join->points, POINTS_FD);
        posix_spawn_file_actions_adddup2(&actions, join->key, KEY_FD);
    }
    posix_spawn_file_actions_addclosefrom_np(&actions, join != NULL ? KEY_FD + 1 : STDERR_FILENO + 1);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    pid_t child;
    int failure = posix_spawn(&child, arguments[0], &actions, &attributes, arguments, environ);
    if (failure != 0)
        sapwood_say("a tool rank cannot start '%s': %s; its ranks run on unobserved", arguments[0], strerror(failure));
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
}

/* Whether the program has called MPI_Finalize. */
static bool has_ended(void)
{
    int has_come = 0;
    SAPWOOD_BEHIND(PMPI_Iprobe)(0, SAPWOOD_WORLD_END_TAG, sapwood_world_whole, &has_come, MPI_STATUS_IGNORE);
    return has_come;
}

/* A rank of the tool: never returns. It sleeps, where a blocking receive would spin. */
_Noreturn void sapwood_world_be_tool(const struct sapwood_world_tool *tool)
{
    struct sapwood_world_join join = {0};
    bool has_started = !tool->has_hosts;
    if (has_started)
        start_command(tool, NULL);
    else
        sapwood_world_join_open(&join, tool->all);
    for (long pause_ms = FIRST_PAUSE_MS;;) {
        if (!has_started && sapwood_world_join_look(&join)) {
            start_command(tool, &join);
            has_started = true;
        }
        if (has_ended())
            break;
        sleep_ms(pause_ms);
        pause_ms = pause_ms * 2 < LAST_PAUSE_MS ? pause_ms * 2 : LAST_PAUSE_MS;
    }
    if (tool->has_hosts)
        sapwood_world_join_close(&join);
    MPI_Datatype byte = SAPWOOD_WORLD_HANDLE(MPI_BYTE, ompi_mpi_byte);
    SAPWOOD_BEHIND(PMPI_Recv)(NULL, 0, byte, 0, SAPWOOD_WORLD_END_TAG, sapwood_world_whole, MPI_STATUS_IGNORE);
    SAPWOOD_BEHIND(PMPI_Finalize)();
    /* Without the exit handlers of a program that has not begun. */
    _exit(0);
}
