/* Begins and ends a million regions, each once and under a name of its own. */
#include <mpi.h>
#include <stdio.h>

#include "sapwood_mpi.h"

enum { NAMES = 1000000 };

int main(int argc, char **argv)
{
    char name[16];
    MPI_Init(&argc, &argv);
    for (int number = 0; number < NAMES; number++) {
        snprintf(name, sizeof name, "%d", number);
        sapwood_region_begin(name);
        sapwood_region_end(name);
    }
    MPI_Finalize();
    return 0;
}
