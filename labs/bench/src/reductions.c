/* Times each MPI_Allreduce of 8 bytes over all ranks, for some seconds.
 *
 *     reductions SECONDS
 *
 * Rank 0 prints the median of its calls in nanoseconds, parts of one included: calls are counted by whole nanoseconds,
 * and those of the middle one are taken for evenly spread within it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The time is looked at after each batch: a short one ends soon, too, where ranks that share a processor take a time
 * slice for each call. */
enum { BATCH = 1000, NS_MAX = 1 << 20 };

static unsigned long counts[NS_MAX];

static long long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000000000 + now.tv_nsec;
}

static double median(unsigned long all)
{
    double before = 0, half = (double)all / 2;
    int ns = 0;
    while (ns < NS_MAX - 1 && before + (double)counts[ns] < half)
        before += (double)counts[ns++];
    return counts[ns] == 0 ? ns : ns + (half - before) / (double)counts[ns];
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 1, one = 1, sum;
    int rank, goes_on = 1;
    unsigned long all = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    /* What is made at the first calls is no part of them. */
    for (int i = 0; i < BATCH; i++)
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    long long begin = now_ns();
    while (goes_on) {
        for (int i = 0; i < BATCH; i++) {
            long long before = now_ns();
            MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
            long long took = now_ns() - before;
            counts[took < NS_MAX ? took : NS_MAX - 1]++;
        }
        all += BATCH;
        goes_on = (double)(now_ns() - begin) < seconds * 1e9;
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("median call of %.3f\n", median(all));
    MPI_Finalize();
    return 0;
}
