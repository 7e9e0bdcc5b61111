/* A process in state D, which no signal but SIGKILL ends: it waits for the child of its vfork,
 * which sleeps for the seconds that are named and then ends. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    unsigned seconds = argc == 2 ? (unsigned)atoi(argv[1]) : 1;
    if (vfork() == 0) {
        sleep(seconds);
        _exit(0);
    }
    return 0;
}
