/* Times the two cheapest calls in a loop, and what no shim can be cheaper than: two readings of the clock.
 *
 *     call_cost CALLS BATCHES
 *
 * Prints nanoseconds per call of MPI_Comm_rank, of an 8-byte MPI_Allreduce on MPI_COMM_SELF, and of two readings of
 * the time-stamp counter, or where there is none of CLOCK_MONOTONIC, one line per batch. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static unsigned long ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return (unsigned long)now_ns();
#endif
}

int main(int argc, char **argv)
{
    int calls = argc > 1 ? atoi(argv[1]) : 1000000;
    int batches = argc > 2 ? atoi(argv[2]) : 1;
    int floor = argc > 3 && strcmp(argv[3], "floor") == 0;
    int rank;
    double one = 1, sum;
    volatile unsigned long spans = 0;
    MPI_Init(&argc, &argv);
    for (int batch = 0; batch < batches; batch++) {
        double begin = now_ns();
        for (int i = 0; i < calls; i++)
            MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        double middle = now_ns();
        for (int i = 0; i < calls; i++)
            MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
        double end = now_ns();
        /* Not where instructions are counted: those of the whole run are. */
        for (int i = 0; i < calls && floor; i++) {
            unsigned long before = ticks();
            spans += ticks() - before;
        }
        double read = now_ns();
        printf("%.2f %.2f %.2f\n", (middle - begin) / calls, (end - middle) / calls, (read - end) / calls);
    }
    MPI_Finalize();
    return 0;
}
