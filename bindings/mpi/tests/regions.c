/* Regions used well and badly. run.py knows what must come of it. */
#include <mpi.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sapwood_mpi.h"

static void recursive(int depth)
{
    sapwood_region_begin("recursive");
    if (depth > 0)
        recursive(depth - 1);
    sapwood_region_end("recursive");
}

/* Six begins find no room; their ends are known to be theirs. */
static void too_deep(void)
{
    for (int i = 0; i < SAPWOOD_REGION_DEPTH_MAX + 5; i++)
        sapwood_region_begin("deep");
    for (int i = 0; i < SAPWOOD_REGION_DEPTH_MAX + 5; i++)
        sapwood_region_end("deep");
}

int main(int argc, char **argv)
{
    char longest[SAPWOOD_REGION_NAME_BYTES_MAX + 2];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';

    sapwood_region_begin("whole"); /* before MPI_Init, ends after it */
    sapwood_region_begin("early");
    sapwood_region_end("early"); /* dropped: counting has not begun */
    MPI_Init(&argc, &argv);
    sapwood_region_end("never begun");
    sapwood_region_begin("outer");
    sapwood_region_begin("left open");
    sapwood_region_end("outer"); /* drops "left open" */
    recursive(4);
    too_deep();
    sapwood_region_begin(NULL);
    sapwood_region_end(NULL);
    sapwood_region_begin("");
    sapwood_region_end("");
    sapwood_region_begin(longest);
    sapwood_region_end(longest);
    if (fork() == 0) { /* a child is no rank */
        sapwood_region_begin("child");
        sapwood_region_end("child");
        _exit(0);
    }
    wait(NULL);
    sapwood_region_end("whole");
    MPI_Finalize();
    sapwood_region_begin("late");
    sapwood_region_end("late");
    return 0;
}
