/* See file_limit.h. */
#define _GNU_SOURCE
#include "file_limit.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

uint64_t sapwood_file_bytes_max(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
}

int sapwood_memory_file(const char *name, uint64_t bytes)
{
    if (bytes > sapwood_file_bytes_max()) {
        errno = EFBIG;
        return -1;
    }
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && ftruncate(fd, (off_t)bytes) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

void sapwood_file_signal_hold(struct sapwood_file_signal *held)
{
    sigemptyset(&held->one);
    sigaddset(&held->one, SIGXFSZ);
    sigset_t pending;
    held->was_pending = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &held->one, &held->before);
}

void sapwood_file_signal_release(const struct sapwood_file_signal *held)
{
    /* One that waited before is the program's, which has blocked it. */
    const struct timespec at_once = {0, 0};
    if (!held->was_pending)
        while (sigtimedwait(&held->one, NULL, &at_once) == SIGXFSZ)
            ;
    pthread_sigmask(SIG_SETMASK, &held->before, NULL);
}
