/* A program without MPI that allocates nothing once it exits, as one must not whose handler of a signal exits: the
 * signal may have come within malloc. Exit code 0, or 3 if a library of its process allocates then. */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);

static bool is_exiting;

static void refuse_at_exit(void)
{
    if (is_exiting)
        _exit(3);
}

void *malloc(size_t bytes)
{
    refuse_at_exit();
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    refuse_at_exit();
    return __libc_calloc(count, bytes);
}

int main(void)
{
    is_exiting = true;
    return 0;
}
