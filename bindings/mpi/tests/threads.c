/* Four threads call MPI at once on communicators of their own. */
#include <mpi.h>
#include <pthread.h>

#include "sapwood_mpi.h"

enum { THREADS = 4, CALLS = 1000, MESSAGES = 500 };
static MPI_Comm own[THREADS];

/* Receives with room for more than comes, whose requests the threads make and complete side by side. */
static void messages(MPI_Comm comm)
{
    for (int i = 0; i < MESSAGES; i++) {
        char out[8] = {0}, in[64];
        MPI_Request request;
        MPI_Irecv(in, sizeof in, MPI_BYTE, MPI_ANY_SOURCE, 0, comm, &request);
        MPI_Send(out, 1 + i % 8, MPI_BYTE, 0, 0, comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static void *calls(void *comm)
{
    for (int i = 0; i < CALLS; i++) {
        double one = 1, sum;
        sapwood_region_begin("call");
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, *(MPI_Comm *)comm);
        sapwood_region_end("call");
    }
    messages(*(MPI_Comm *)comm);
    return NULL;
}

int main(int argc, char **argv)
{
    int granted;
    pthread_t threads[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &granted);
    if (granted != MPI_THREAD_MULTIPLE)
        return 3;
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_dup(MPI_COMM_SELF, &own[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, calls, &own[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&own[i]);
    MPI_Finalize();
    return 0;
}
