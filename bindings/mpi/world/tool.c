/* A rank of the tool: what it starts, and how it sleeps; see world.h. */
#define _GNU_SOURCE
#include "world.h"

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

/* Divides the arguments of the command: no path or option holds it. */
#define DIVIDER '\x1f'

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
        char *end = strchr(word, DIVIDER);
        if (end != NULL)
            *end++ = '\0';
        arguments[count++] = word;
        word = end;
    }
    arguments[count] = NULL;
}

/* Starts the command of a tool rank. It has a session and no descriptor of the rank:
 * launchers wait for the end of whatever holds a rank's output. */
static void start_command(int tool, int on_host)
{
    char *command = getenv("SAPWOOD_MPI_WORLD_COMMAND");
    if (command == NULL || *command == '\0')
        return;
    char *arguments[ARGUMENTS_MAX + 1], number[12];
    /* The environment of this rank serves nothing else from here on. */
    split(command, arguments);
    snprintf(number, sizeof number, "%d", tool);
    setenv("SAPWOOD_RANK", number, true);
    snprintf(number, sizeof number, "%d", on_host);
    setenv("SAPWOOD_MPI_LEAF", number, true);
    /* It is no MPI program. */
    unsetenv("LD_PRELOAD");
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    pid_t child;
    int failure = posix_spawn(&child, arguments[0], &actions, &attributes, arguments, environ);
    if (failure != 0)
        sapwood_say("a tool rank cannot start '%s': %s; its ranks run on unobserved", arguments[0], strerror(failure));
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
}

/* A rank of the tool: never returns. It sleeps, where a blocking receive would spin. */
_Noreturn void sapwood_world_be_tool(int tool, int on_host)
{
    start_command(tool, on_host);
    long pause_ms = FIRST_PAUSE_MS;
    for (int has_come = 0;;) {
        SAPWOOD_BEHIND(PMPI_Iprobe)(0, SAPWOOD_WORLD_END_TAG, sapwood_world_whole, &has_come, MPI_STATUS_IGNORE);
        if (has_come)
            break;
        sleep_ms(pause_ms);
        pause_ms = pause_ms * 2 < LAST_PAUSE_MS ? pause_ms * 2 : LAST_PAUSE_MS;
    }
    MPI_Datatype byte = SAPWOOD_WORLD_HANDLE(MPI_BYTE, ompi_mpi_byte);
    SAPWOOD_BEHIND(PMPI_Recv)(NULL, 0, byte, 0, SAPWOOD_WORLD_END_TAG, sapwood_world_whole, MPI_STATUS_IGNORE);
    SAPWOOD_BEHIND(PMPI_Finalize)();
    /* Without the exit handlers of a program that has not begun. */
    _exit(0);
}
