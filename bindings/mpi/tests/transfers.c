/* Point-to-point messages that are smaller than the room for them, in every way in which a receive
 * can complete. What each rank has sent and received is in expected.py. A status that the program
 * asks for is checked here. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 1 << 20, MANY = 300, TOO_MANY = 16384 + 16 };
enum completion { WAIT, WAITANY, WAITSOME, WAITALL, TEST, TESTANY, TESTSOME, TESTALL, COMPLETIONS };
static char out[ROOM], in[ROOM];
static MPI_Request requests[TOO_MANY];
static int rank, size;

static void check(const MPI_Status *status, int bytes)
{
    int count;
    MPI_Get_count(status, MPI_BYTE, &count);
    if (count != bytes) {
        fprintf(stderr, "a status tells %d bytes instead of %d\n", count, bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void complete(enum completion how, MPI_Request *request, MPI_Status *one, MPI_Status *all)
{
    int flag = 0, index, number = 0;
    switch (how) {
    case WAIT: MPI_Wait(request, one); break;
    case WAITANY: MPI_Waitany(1, request, &index, one); break;
    case WAITSOME: MPI_Waitsome(1, request, &number, &index, all); break;
    case WAITALL: MPI_Waitall(1, request, all); break;
    case TEST: while (!flag) MPI_Test(request, &flag, one); break;
    case TESTANY: while (!flag) MPI_Testany(1, request, &index, &flag, one); break;
    case TESTSOME: while (number == 0) MPI_Testsome(1, request, &number, &index, all); break;
    default: while (!flag) MPI_Testall(1, request, &flag, all); break;
    }
}

/* A megabyte is posted, a few bytes come. */
static void non_blocking(void)
{
    for (int how = 0; how < COMPLETIONS; how++) {
        MPI_Request request;
        MPI_Status status;
        MPI_Irecv(in, ROOM, MPI_BYTE, rank, how, MPI_COMM_WORLD, &request);
        MPI_Send(out, 8 + how, MPI_BYTE, rank, how, MPI_COMM_WORLD);
        complete(how, &request, &status, &status);
        check(&status, 8 + how);
        MPI_Irecv(in, ROOM, MPI_BYTE, MPI_ANY_SOURCE, how, MPI_COMM_WORLD, &request);
        MPI_Send(out, 100 + how, MPI_BYTE, rank, how, MPI_COMM_WORLD);
        complete(how, &request, MPI_STATUS_IGNORE, MPI_STATUSES_IGNORE);
    }
}

static void blocking(void)
{
    MPI_Message message;
    MPI_Status status;
    MPI_Request request;
    MPI_Isend(out, 5, MPI_BYTE, rank, 0, MPI_COMM_WORLD, &request);
    MPI_Recv(in, ROOM, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Isend(out, 9, MPI_BYTE, rank, 0, MPI_COMM_WORLD, &request);
    MPI_Mprobe(rank, 0, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(in, ROOM, MPI_BYTE, &message, &status);
    check(&status, 9);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Isend(out, 11, MPI_BYTE, rank, 0, MPI_COMM_WORLD, &request);
    MPI_Mprobe(rank, 0, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Imrecv(in, ROOM, MPI_BYTE, &message, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* The ring's neighbours send as many bytes as their rank says. */
static void exchanges(void)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Request request;
    MPI_Sendrecv(out, 10 * (rank + 1), MPI_BYTE, right, 0, in, ROOM, MPI_BYTE, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv_replace(in, 10 * size, MPI_BYTE, rank, 0, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Irecv(in, ROOM, MPI_BYTE, rank, 1, MPI_COMM_WORLD, &request);
    MPI_Sendrecv(out, 6, MPI_BYTE, rank, 1, in + ROOM / 2, 77, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Isend(out, 7, MPI_BYTE, rank, 2, MPI_COMM_WORLD, &request);
    MPI_Sendrecv(out, 77, MPI_BYTE, MPI_PROC_NULL, 0, in, ROOM, MPI_BYTE, rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void to_and_from_none(void)
{
    MPI_Message message;
    MPI_Send(out, 1000, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    MPI_Recv(in, 1000, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(in, 1000, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Imrecv(in, 1000, MPI_BYTE, &message, &requests[0]);
    MPI_Irecv(in, 1000, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(out, 1000, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[2]);
    MPI_Send_init(out, 1000, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[3]);
    MPI_Recv_init(in, 1000, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[4]);
    MPI_Startall(2, requests + 3);
    MPI_Waitall(5, requests, MPI_STATUSES_IGNORE);
    MPI_Request_free(&requests[3]);
    MPI_Request_free(&requests[4]);
}

/* Started three times, by either function; waited for once when it is not active. */
static void persistent(void)
{
    MPI_Status statuses[2];
    MPI_Recv_init(in, 1000, MPI_INT, rank, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(out, 7, MPI_INT, rank, 3, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, statuses);
    check(&statuses[0], 28);
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Start(&requests[0]);
    MPI_Start(&requests[1]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

static void derived(void)
{
    MPI_Datatype type;
    MPI_Type_vector(3, 2, 4, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Irecv(in, 50, type, rank, 4, MPI_COMM_WORLD, &requests[0]);
    MPI_Send(out, 2, type, rank, 4, MPI_COMM_WORLD);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Type_free(&type);
}

/* Cancelled; too small for what comes, beside one that is not; freed before its message comes. */
static void that_fail(void)
{
    MPI_Irecv(in, 1000, MPI_BYTE, rank, 5, MPI_COMM_WORLD, &requests[0]);
    MPI_Cancel(&requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int ignores = 0; ignores < 2; ignores++) {
        MPI_Status statuses[2];
        int class, own = MPI_SUCCESS;
        MPI_Irecv(in, 4, MPI_BYTE, rank, 6, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(in + 100, 100, MPI_BYTE, rank, 7, MPI_COMM_WORLD, &requests[1]);
        MPI_Send(out, 8, MPI_BYTE, rank, 6, MPI_COMM_WORLD);
        MPI_Send(out, 13, MPI_BYTE, rank, 7, MPI_COMM_WORLD);
        int outcome = MPI_Waitall(2, requests, ignores ? MPI_STATUSES_IGNORE : statuses);
        MPI_Error_class(outcome, &class);
        if (!ignores)
            MPI_Error_class(statuses[0].MPI_ERROR, &own);
        printf("%s %s %s\n", class == MPI_ERR_IN_STATUS ? "in status" : "other", own == MPI_ERR_TRUNCATE ? "truncated" : "-",
               requests[1] == MPI_REQUEST_NULL ? "complete" : "incomplete");
        if (requests[1] != MPI_REQUEST_NULL)
            MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Irecv(in, 1000, MPI_BYTE, rank, 8, MPI_COMM_WORLD, &requests[0]);
    MPI_Request_free(&requests[0]);
    MPI_Send(out, 50, MPI_BYTE, rank, 8, MPI_COMM_WORLD);
}

/* Receives of which a call completes few: each third one, the last first, and then all. */
static void a_few_at_a_time(int count)
{
    static int indices[MANY];
    static MPI_Status statuses[MANY];
    for (int i = 0; i < count; i++)
        MPI_Irecv(in + 16 * i, 16, MPI_BYTE, rank, i, MPI_COMM_WORLD, &requests[i]);
    for (int i = count - 1; i >= 0; i--) {
        MPI_Send(out, 1 + i % 7, MPI_BYTE, rank, i, MPI_COMM_WORLD);
        for (int number = 0; i % 3 == 0 && number == 0;) {
            if (i % 2)
                MPI_Waitsome(count, requests, &number, indices, statuses);
            else
                MPI_Testsome(count, requests, &number, indices, MPI_STATUSES_IGNORE);
        }
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

static void in_one_call(int count)
{
    for (int i = 0; i < count; i++)
        MPI_Irecv(in + 16 * i, 16, MPI_BYTE, rank, 9, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < count; i++)
        MPI_Send(out, 1 + i % 7, MPI_BYTE, rank, 9, MPI_COMM_WORLD);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    non_blocking();
    blocking();
    /* No rank receives from any source any more. */
    MPI_Barrier(MPI_COMM_WORLD);
    exchanges();
    to_and_from_none();
    persistent();
    derived();
    that_fail();
    a_few_at_a_time(MANY);
    in_one_call(MANY);
    in_one_call(TOO_MANY);
    MPI_Finalize();
    return 0;
}
