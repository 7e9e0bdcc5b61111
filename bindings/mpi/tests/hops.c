/* Reductions in which one rank is late, for the hops that the bypass notes. "reduce" and "large" need the bypass.
 *
 *   hops reduce ROUNDS       the last rank comes to each MPI_Reduce once the others have left it, but for the root
 *   hops allreduce ROUNDS    the last rank comes late to each MPI_Allreduce
 *   hops large ROUNDS        as reduce, with an operand of several chunks
 *
 * Nothing is timed: the last rank waits for a message of each rank that has returned, or is about to call.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

enum { ELEMENTS_MAX = 3000 };

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size, count = strcmp(argv[1], "large") == 0 ? ELEMENTS_MAX : 4, wrong = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    static double in[ELEMENTS_MAX], out[ELEMENTS_MAX];
    int is_reduce = strcmp(argv[1], "allreduce") != 0, last = size - 1;
    for (int round = 0; round < atoi(argv[2]); round++) {
        for (int i = 0; i < count; i++)
            in[i] = rank + round;
        /* The root and all ranks of an MPI_Allreduce return after the last one has come. */
        int tells_before = !is_reduce || rank == 0;
        for (int other = 0; other < last && rank == last; other++)
            MPI_Recv(NULL, 0, MPI_INT, other, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank != last && tells_before)
            MPI_Send(NULL, 0, MPI_INT, last, round, MPI_COMM_WORLD);
        if (is_reduce)
            MPI_Reduce(in, out, count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        else
            MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (rank != last && !tells_before)
            MPI_Send(NULL, 0, MPI_INT, last, round, MPI_COMM_WORLD);
        double sum = size * (last / 2.0 + round);
        wrong += (rank == 0 || !is_reduce) && (out[0] != sum || out[count - 1] != sum);
    }
    MPI_Finalize();
    if (wrong > 0)
        printf("rank %d: %d wrong sums\n", rank, wrong);
    return wrong > 0;
}
