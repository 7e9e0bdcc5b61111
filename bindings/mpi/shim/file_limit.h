/* A limit on the size of files (ulimit -f) ends no program through a file of ours: SIGXFSZ would. */
#ifndef SAPWOOD_FILE_LIMIT_H
#define SAPWOOD_FILE_LIMIT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* The most that a file of this process may have. */
uint64_t sapwood_file_bytes_max(void);

/* A memory file of this size, for which a limit holds as for any other; -1 with errno. */
int sapwood_memory_file(const char *name, uint64_t bytes);

/* Around writes of the calling thread: one beyond the limit fails, and raises no signal. */
struct sapwood_file_signal {
    sigset_t one, before;
    bool was_pending;
};
void sapwood_file_signal_hold(struct sapwood_file_signal *held);
void sapwood_file_signal_release(const struct sapwood_file_signal *held);

#endif
