/* Four threads call MPI at once on communicators of their own. */
#include <mpi.h>
#include <pthread.h>

#include "sapwood_mpi.h"

enum { THREADS = 4, CALLS = 1000 };
static MPI_Comm own[THREADS];

static void *calls(void *comm)
{
    for (int i = 0; i < CALLS; i++) {
        double one = 1, sum;
        sapwood_region_begin("call");
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, *(MPI_Comm *)comm);
        sapwood_region_end("call");
    }
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
