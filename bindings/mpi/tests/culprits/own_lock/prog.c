/* A thread of rank 2 takes a lock and never gives it back; the main thread waits for it outside of MPI. */
#include <mpi.h>
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *keeper(void *unused)
{
    pthread_mutex_lock(&lock);
    sleep(1000);
    return unused;
}

int main(int argc, char **argv)
{
    int rank, provided, value = 1, sum;
    pthread_t thread;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int step = 0; step < 100; step++) {
        MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (rank == 2 && step == 40) {
            pthread_create(&thread, NULL, keeper, NULL);
            usleep(100000);
            pthread_mutex_lock(&lock);
        }
    }
    MPI_Finalize();
    return 0;
}
