/* Changes the settings of its rank by itself, as a leaf does: each change is pending when the rank's
 * next call begins. Counting pauses with the first receive, so that neither it nor its send and wait
 * are counted; then it goes on. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "../shim/control.h"

/* Where the shim has mapped the control page. */
static struct sapwood_control *control_page(void)
{
    char line[512];
    unsigned long begin = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && begin == 0 && fgets(line, sizeof line, maps) != NULL)
        if (strstr(line, "memfd:sapwood-control") != NULL)
            sscanf(line, "%lx", &begin);
    if (maps != NULL)
        fclose(maps);
    return (struct sapwood_control *)begin;
}

static void settle(struct sapwood_control *control, uint32_t groups)
{
    atomic_store(&control->groups, groups);
    atomic_fetch_add(&control->change, 1);
    atomic_store(&control->pending, 1);
}

static void receive(int rank, int bytes)
{
    char out[64] = {0}, in[64];
    MPI_Request request;
    MPI_Irecv(in, sizeof in, MPI_BYTE, rank, 1, MPI_COMM_WORLD, &request);
    MPI_Send(out, bytes, MPI_BYTE, rank, 1, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    struct sapwood_control *control = control_page();
    if (control == NULL)
        return 3;
    settle(control, 0);
    receive(rank, 5);
    settle(control, SAPWOOD_GROUPS_COUNTED);
    receive(rank, 9);
    receive(rank, 11);
    MPI_Finalize();
    return 0;
}
