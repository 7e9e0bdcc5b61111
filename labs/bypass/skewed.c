/* One cell of the bypass benchmark: reductions under skew, by absolute times.
 *
 *   skewed DOUBLES SKEW_US DILATION ITERATIONS
 *
 * Iteration k starts at a time on the common clock, without a barrier. Each rank sleeps
 * to that time and a uniform part of the skew, then reduces. Rank 0 prints one JSON
 * object: microseconds blocked in MPI per call (mean over ranks other than the root),
 * from the last arrival to the result at the root, of processor time per call and rank,
 * and how many starts came late.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include <mpi.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double processor_time(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

/* Whether it was already past the time. */
static int sleep_to(double due)
{
    struct timespec ts = {(time_t)due, (long)((due - (double)(time_t)due) * 1e9)};
    if (now() > due)
        return 1;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
    return 0;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[count / 2];
}

int main(int argc, char **argv)
{
    int rank, size, late = 0, all_late = 0;
    if (argc != 5)
        return 2;
    int doubles = atoi(argv[1]), iterations = atoi(argv[4]);
    double skew = atof(argv[2]) * atof(argv[3]) * 1e-6;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    prctl(PR_SET_TIMERSLACK, 1);
    /* The time that the slower way needs without skew must fit, or iterations pile up. */
    double period = skew + (300 + 60 * size + doubles * 0.01 * size) * 1e-6;
    double *in = malloc((size_t)doubles * sizeof *in), *out = malloc((size_t)doubles * sizeof *out);
    double *arrived = malloc((size_t)iterations * sizeof *arrived), *ended = malloc((size_t)iterations * sizeof *ended);
    double *last = malloc((size_t)iterations * sizeof *last), *stay = malloc((size_t)iterations * sizeof *stay);
    double *stays = malloc((size_t)iterations * sizeof *stays);
    for (int i = 0; i < 20; i++) /* connections and shared memory */
        MPI_Reduce(memset(in, 0, (size_t)doubles * sizeof *in), out, doubles, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    PMPI_Barrier(MPI_COMM_WORLD);
    double start = now() + 0.01, cpu;
    PMPI_Bcast(&start, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    srand((unsigned)(rank * 7919 + 1));
    cpu = processor_time();
    for (int i = 0; i < iterations; i++) {
        late += sleep_to(start + i * period + skew * (rand() / (RAND_MAX + 1.0)));
        for (int j = 0; j < doubles; j++)
            in[j] = rank + j + i;
        arrived[i] = now();
        MPI_Reduce(in, out, doubles, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        ended[i] = now();
        stay[i] = rank == 0 ? 0 : ended[i] - arrived[i];
        int j = i % doubles;
        if (rank == 0 && out[j] != size * (double)(i + j) + size * (size - 1) / 2.0)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    cpu = processor_time() - cpu;
    double all_cpu, blocked = 0, latency_sum = 0;
    PMPI_Reduce(arrived, last, iterations, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    PMPI_Reduce(stay, stays, iterations, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    PMPI_Reduce(&cpu, &all_cpu, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    PMPI_Reduce(&late, &all_late, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        for (int i = 0; i < iterations; i++) {
            stays[i] /= size - 1;
            blocked += stays[i] / iterations;
            last[i] = ended[i] - last[i];
            latency_sum += last[i] / iterations;
        }
        printf("{\"blocked_us\": %.3f, \"blocked_us_median\": %.3f, \"latency_us\": %.3f, \"latency_us_median\": %.3f, "
               "\"cpu_us\": %.3f, \"late\": %.4f}\n",
               blocked * 1e6, median(stays, iterations) * 1e6, latency_sum * 1e6, median(last, iterations) * 1e6,
               all_cpu / iterations / size * 1e6, (double)all_late / iterations / size);
    }
    MPI_Finalize();
    return 0;
}
