/* Calls MPI from more places than a rank's table has room for, and then transfers bytes that become
 * known later. */
#include <mpi.h>

#define TWICE(call) call; call;
#define TIMES_32(call) TWICE(TWICE(TWICE(TWICE(TWICE(call)))))
#define TIMES_1024(call) TIMES_32(TIMES_32(call))

int main(int argc, char **argv)
{
    int rank;
    char out[64] = {0}, in[64];
    MPI_Request requests[2];
    MPI_Init(&argc, &argv);
    TWICE(TIMES_1024(MPI_Comm_rank(MPI_COMM_WORLD, &rank)))
    MPI_Irecv(in, sizeof in, MPI_BYTE, rank, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Send(out, 9, MPI_BYTE, rank, 1, MPI_COMM_WORLD);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Recv_init(in, sizeof in, MPI_BYTE, rank, 2, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(out, 7, MPI_BYTE, rank, 2, MPI_COMM_WORLD, &requests[1]);
    for (int start = 0; start < 3; start++) {
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    MPI_Finalize();
    return 0;
}
