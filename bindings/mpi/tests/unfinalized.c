/* Ends without MPI_Finalize: by exit(3), or by SIGKILL of rank 1.
 *
 *     unfinalized exit|kill */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    int rank;
    double one = 1, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 100; i++)
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (argc > 1 && strcmp(argv[1], "exit") == 0)
        exit(0);
    if (rank == 1)
        raise(SIGKILL);
    MPI_Barrier(MPI_COMM_WORLD); /* never completes */
    MPI_Finalize();
    return 0;
}
