/* Rank 1 keeps a lock over a reduction; its helper thread, which has not called MPI before, needs that
   lock to send the message without which rank 0 does not come. */
#include <mpi.h>
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *helper(void *unused)
{
    int value = 7;
    usleep(300000);
    pthread_mutex_lock(&lock);
    MPI_Send(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(int argc, char **argv)
{
    int rank, provided, value = 1, sum;
    pthread_t thread;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int step = 0; step < 20; step++)
        MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 1) {
        pthread_create(&thread, NULL, helper, NULL);
        pthread_mutex_lock(&lock);
    }
    if (rank == 0)
        MPI_Recv(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 1) {
        pthread_mutex_unlock(&lock);
        pthread_join(thread, NULL);
    }
    MPI_Finalize();
    return 0;
}
