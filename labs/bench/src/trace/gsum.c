/* The programs gsum and compute-gsum of EventSpace's authors: sums of all ranks by turns over two
 * communicators, and the same with a sort of integers before each that takes about as long.
 *
 *     gsum ITERATIONS SORTED
 *
 * SORTED numbers are sorted before each sum; 0 for none, -1 for as many as take as long as a sum.
 * Rank 0 prints the seconds of the iterations, and the numbers sorted. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 200, NUMBERS_MAX = 1 << 16 };

static int unsorted[NUMBERS_MAX], numbers[NUMBERS_MAX];

static int compare(const void *one, const void *other)
{
    int left = *(const int *)one, right = *(const int *)other;
    return (left > right) - (left < right);
}

static void sort(int count)
{
    memcpy(numbers, unsorted, (size_t)count * sizeof *numbers);
    qsort(numbers, (size_t)count, sizeof *numbers, compare);
}

static double iterate(MPI_Comm *comms, int iterations, int sorted)
{
    double one = 1, sum, begin = MPI_Wtime();
    for (int i = 0; i < iterations; i++) {
        if (sorted > 0)
            sort(sorted);
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, comms[i % 2]);
    }
    return MPI_Wtime() - begin;
}

/* As many numbers as one rank sorts while a sum takes. */
static int as_long_as_a_sum(MPI_Comm *comms)
{
    double sum_s = iterate(comms, TRIES, 0) / TRIES, sort_s = 0;
    int count = 8;
    while (sort_s < sum_s && count < NUMBERS_MAX) {
        count = count * 5 / 4 + 1;
        double begin = MPI_Wtime();
        for (int i = 0; i < TRIES; i++)
            sort(count);
        sort_s = (MPI_Wtime() - begin) / TRIES;
    }
    MPI_Bcast(&count, 1, MPI_INT, 0, comms[0]);
    return count;
}

int main(int argc, char **argv)
{
    int rank, iterations = argc > 1 ? atoi(argv[1]) : 20000, sorted = argc > 2 ? atoi(argv[2]) : 0;
    MPI_Comm comms[2];
    srand(1);
    for (int i = 0; i < NUMBERS_MAX; i++)
        unsorted[i] = rand();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    if (sorted < 0)
        sorted = as_long_as_a_sum(comms);
    double seconds = iterate(comms, iterations, sorted);
    if (rank == 0)
        printf("%.9f %d\n", seconds, sorted);
    MPI_Finalize();
    return 0;
}
