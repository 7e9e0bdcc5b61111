/* Balances itself by the monitor's advice; also the example of docs/monitor-control.md.
 *
 *     balance ITERATIONS
 *
 * Work is a list of items that each rank computes; rank r needs (r + 1) times as long for
 * an item as rank 0, as on hosts of different speed. The first half of the iterations runs
 * with equal shares. Then, each time that the monitor has found something new, rank 0
 * looks at the advice for the region "work" and decides for all; each rank corrects its
 * share by its own time over the mean. Prints the mean time of an iteration at first and
 * at the end, from the slowest rank, and how often shares were corrected. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "sapwood_mpi.h"

enum { ITEMS_PER_RANK = 600, ITEM_NS = 20000 };

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Takes its time whatever else runs on the machine: a sleep stands for the work. */
static void compute(double items, int rank)
{
    double ns = items * ITEM_NS * (rank + 1);
    nanosleep(&(struct timespec){.tv_sec = (time_t)(ns / 1e9), .tv_nsec = (long)ns % 1000000000}, NULL);
}

int main(int argc, char **argv)
{
    int rank, size, iterations = argc > 1 ? atoi(argv[1]) : 100, corrections = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double share = ITEMS_PER_RANK, own = 0, own_before = 0, mean_before = 0, first = 0, last = 0;
    unsigned long long round_before = 0;
    for (int i = 0; i < iterations; i++) {
        double begin = now();
        sapwood_region_begin("work");
        compute(share, rank);
        sapwood_region_end("work");
        own += now() - begin;
        MPI_Barrier(MPI_COMM_WORLD);
        first += i < iterations / 4 ? now() - begin : 0;
        last += i >= iterations - iterations / 4 ? now() - begin : 0;

        /* The mean of the interval is the difference of two sums. */
        struct sapwood_event_advice advice;
        double decision[2] = {0, 0};
        if (rank == 0 && sapwood_advice_event("work", &advice) && advice.round > round_before) {
            decision[0] = i >= iterations / 2 && round_before > 0;
            decision[1] = advice.time_mean_s - mean_before;
            mean_before = advice.time_mean_s;
            round_before = advice.round;
        }
        MPI_Bcast(decision, 2, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        if (decision[1] <= 0)
            continue;
        double spent = own - own_before, total;
        own_before = own;
        if (decision[0] == 0 || spent <= 0)
            continue;
        share *= decision[1] / spent;
        MPI_Allreduce(&share, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        share *= (double)ITEMS_PER_RANK * size / total;
        corrections++;
    }
    double times[2] = {first, last}, slowest[2];
    MPI_Reduce(times, slowest, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("per iteration: %.2f ms at first, %.2f ms at the end; %d corrections\n",
               1e3 * slowest[0] / (iterations / 4), 1e3 * slowest[1] / (iterations / 4), corrections);
    MPI_Finalize();
    return 0;
}
