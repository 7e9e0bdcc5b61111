/* Times a clock and the cheapest collective, in a loop and one by one.
 *
 *     event_cost CALLS BATCHES [LEVEL]
 *
 * With a level the program calls MPI_Pcontrol of it first: 0 switches what observes it off.
 * Prints four numbers of nanoseconds per batch: clock_gettime, the time-stamp counter (0 where there
 * is none), an 8-byte MPI_Allreduce on MPI_COMM_SELF in a loop, and the median of such calls each
 * after other memory than theirs was used. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

enum { COLD_CALLS = 101, USED_BYTES = 4 << 20, LINE_BYTES = 64 };

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double clock_ns(int calls)
{
    struct timespec now;
    double begin = now_ns();
    for (int i = 0; i < calls; i++)
        clock_gettime(CLOCK_MONOTONIC, &now);
    return (now_ns() - begin) / calls;
}

static double counter_ns(int calls)
{
#if defined(__x86_64__)
    static volatile unsigned long long last;
    double begin = now_ns();
    for (int i = 0; i < calls; i++)
        last = __rdtsc();
    return (now_ns() - begin) / calls;
#else
    (void)calls;
    return 0;
#endif
}

static void reduce(void)
{
    double one = 1, sum;
    MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
}

static double hot_ns(int calls)
{
    double begin = now_ns();
    for (int i = 0; i < calls; i++)
        reduce();
    return (now_ns() - begin) / calls;
}

static int compare(const void *one, const void *other)
{
    double difference = *(const double *)one - *(const double *)other;
    return (difference > 0) - (difference < 0);
}

static double cold_ns(volatile char *used)
{
    static double times[COLD_CALLS];
    for (int i = 0; i < COLD_CALLS; i++) {
        for (int at = 0; at < USED_BYTES; at += LINE_BYTES)
            used[at]++;
        double begin = now_ns();
        reduce();
        times[i] = now_ns() - begin;
    }
    qsort(times, COLD_CALLS, sizeof *times, compare);
    return times[COLD_CALLS / 2];
}

int main(int argc, char **argv)
{
    int calls = argc > 1 ? atoi(argv[1]) : 1000000;
    int batches = argc > 2 ? atoi(argv[2]) : 1;
    char *used = calloc(1, USED_BYTES);
    MPI_Init(&argc, &argv);
    if (argc > 3)
        MPI_Pcontrol(atoi(argv[3]));
    for (int batch = 0; batch < batches; batch++)
        printf("%.2f %.2f %.2f %.2f\n", clock_ns(calls), counter_ns(calls), hot_ns(calls), cold_ns(used));
    MPI_Finalize();
    free(used);
    return 0;
}
