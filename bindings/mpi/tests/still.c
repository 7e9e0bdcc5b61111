/* A program that stops making progress, in the way that its first argument names, until the file
 * named by its second argument is there:
 *
 *   deadlock   every rank receives from the next one, which does not send; never ends
 *   between    every rank receives from the first one of the other half, which does not send
 *   compute    rank 1 computes while the others wait for it in a barrier
 *   sleep      rank 1 sleeps while the others wait
 *   part       the odd ranks wait for rank 1, which sleeps, in a communicator without a name, and
 *              the even ones wait for all of them
 *   reduce     rank 0 waits in a reduction for rank 1, which sleeps; the others leave it and end
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sapwood_mpi.h"

enum { SECONDS_MAX = 60 };

static int is_over(const char *stop)
{
    static time_t begin;
    if (begin == 0)
        begin = time(NULL);
    return access(stop, F_OK) == 0 || time(NULL) - begin > SECONDS_MAX;
}

static void compute(const char *stop)
{
    volatile double x = 1;
    do {
        for (int i = 0; i < 10000000; i++)
            x = x * 1.0000001;
    } while (!is_over(stop));
}

static void wait_asleep(const char *stop)
{
    while (!is_over(stop))
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

static void deadlock(int rank, int size)
{
    MPI_Comm ring;
    int word;
    MPI_Comm_dup(MPI_COMM_WORLD, &ring);
    MPI_Comm_set_name(ring, "ring");
    sapwood_region_begin("exchange");
    MPI_Recv(&word, 1, MPI_INT, (rank + 1) % size, 0, ring, MPI_STATUS_IGNORE);
}

static void deadlock_between(int rank, MPI_Comm half)
{
    MPI_Comm bridge;
    int word;
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &bridge);
    MPI_Comm_set_name(bridge, "bridge");
    MPI_Recv(&word, 1, MPI_INT, 0, 0, bridge, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int rank, size, sum, one = 1;
    MPI_Comm half;
    const char *mode = argc == 3 ? argv[1] : "", *stop = argc == 3 ? argv[2] : "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Barrier(half);
    if (strcmp(mode, "deadlock") == 0)
        deadlock(rank, size);
    if (strcmp(mode, "between") == 0)
        deadlock_between(rank, half);
    if (rank == 1 && strcmp(mode, "compute") == 0)
        compute(stop);
    if (rank == 1 && (!strcmp(mode, "sleep") || !strcmp(mode, "part") || !strcmp(mode, "reduce")))
        wait_asleep(stop);
    if (rank % 2 == 1 && strcmp(mode, "part") == 0)
        MPI_Barrier(half);
    if (strcmp(mode, "reduce") == 0)
        MPI_Reduce(&one, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    else
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    if (rank == 0)
        puts("the program is done");
    return 0;
}
