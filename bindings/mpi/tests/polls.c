/* Two receives of messages that the rank sends to itself:
 *
 *     polls MODE
 *
 *   wait   completed by MPI_Waitall
 *   test   by MPI_Testall, which is called over and over, the first time before the messages are sent */
#include <mpi.h>
#include <string.h>

int main(int argc, char **argv)
{
    int in[2], word = 1, rank, is_done = 0;
    MPI_Request requests[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int tests = argc == 2 && strcmp(argv[1], "test") == 0;
    for (int i = 0; i < 2; i++)
        MPI_Irecv(&in[i], 1, MPI_INT, rank, i, MPI_COMM_WORLD, &requests[i]);
    if (tests)
        MPI_Testall(2, requests, &is_done, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 2; i++)
        MPI_Send(&word, 1, MPI_INT, rank, i, MPI_COMM_WORLD);
    while (tests && !is_done)
        MPI_Testall(2, requests, &is_done, MPI_STATUSES_IGNORE);
    if (!tests)
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Finalize();
    return 0;
}
