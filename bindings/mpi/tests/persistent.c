/* Persistent collectives (MPI 4) on a communicator called "row": 50 rounds of a reduction of two numbers and of a
 * broadcast of one from the last rank.
 *
 *     persistent CASE
 *
 *     both    both are started by one call, and completed by one
 *     late    each is started and completed by itself; the last rank is late to each
 *     skips   the reduction alone; the last rank does not start it for the 41st time, and receives a message that no
 *             rank sends
 *     freed   the same, with messages of the world: "row" is freed once the requests are made, as a library may do
 *     orders  ranks of odd number start the reduction, call a barrier and a reduction of ten numbers, and start the
 *             broadcast; the others start the broadcast first and the reduction last; one call completes both
 */
#include <mpi.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 50, SKIPPED = 40, LATE_MS = 20, SECONDS_MAX = 300, NUMBERS = 10 };

static int rank, size;
static MPI_Comm row;

static void work(int ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

static void both(MPI_Request requests[2])
{
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Startall(2, requests);
        if (i % 2 == 0)
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        /* One by one: MPI_Testall of MPICH 4.0 refuses persistent collectives. */
        for (int one = 0; i % 2 == 1 && one < 2; one++)
            for (int is_done = 0; !is_done;)
                MPI_Test(&requests[one], &is_done, MPI_STATUS_IGNORE);
    }
}

static void late(MPI_Request requests[2])
{
    for (int i = 0; i < ROUNDS; i++) {
        for (int one = 0; one < 2; one++) {
            if (rank == size - 1)
                work(LATE_MS);
            MPI_Start(&requests[one]);
            MPI_Wait(&requests[one], MPI_STATUS_IGNORE);
        }
    }
}

static void skips(MPI_Request *reduction, MPI_Comm messages)
{
    int word = 0;
    for (int i = 0; i < ROUNDS; i++) {
        if (rank == size - 1 && i == SKIPPED)
            MPI_Recv(&word, 1, MPI_INT, 0, 0, messages, MPI_STATUS_IGNORE);
        MPI_Start(reduction);
        MPI_Wait(reduction, MPI_STATUS_IGNORE);
    }
}

static void orders(MPI_Request requests[2])
{
    double own[NUMBERS] = {0}, sums[NUMBERS];
    int first = rank % 2 == 1 ? 0 : 1;
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Start(&requests[first]);
        MPI_Barrier(row);
        MPI_Allreduce(own, sums, NUMBERS, MPI_DOUBLE, MPI_SUM, row);
        MPI_Start(&requests[1 - first]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
}

int main(int argc, char **argv)
{
    double own[2] = {1, 2}, sum[2];
    int word = 0;
    MPI_Request requests[2];
    alarm(SECONDS_MAX);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 2)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Comm_dup(MPI_COMM_WORLD, &row);
    MPI_Comm_set_name(row, "row");
    MPI_Allreduce_init(own, sum, 2, MPI_DOUBLE, MPI_SUM, row, MPI_INFO_NULL, &requests[0]);
    MPI_Bcast_init(&word, 1, MPI_INT, size - 1, row, MPI_INFO_NULL, &requests[1]);
    if (strcmp(argv[1], "freed") == 0)
        MPI_Comm_free(&row);
    if (strcmp(argv[1], "both") == 0)
        both(requests);
    else if (strcmp(argv[1], "late") == 0)
        late(requests);
    else if (strcmp(argv[1], "orders") == 0)
        orders(requests);
    else
        skips(&requests[0], row == MPI_COMM_NULL ? MPI_COMM_WORLD : row);
    for (int one = 0; one < 2; one++)
        MPI_Request_free(&requests[one]);
    if (row != MPI_COMM_NULL)
        MPI_Comm_free(&row);
    MPI_Finalize();
    return 0;
}
