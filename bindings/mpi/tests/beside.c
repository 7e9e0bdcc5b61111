/* A second thread of a rank receives a message that comes late, on a communicator of its own.
 *
 *   beside computes   meanwhile the first thread computes, then sends the other one of two ranks its message
 *   beside waits      meanwhile the first thread of rank 0 receives as well; rank 1 sends to both after a while
 *
 * Rank 0 prints for how many nanoseconds it has computed, or rank 1 has slept. Ends with 3 without
 * MPI_THREAD_MULTIPLE.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { SECONDS = 3, TO_HELPER = 1, TO_FIRST, FROM_FIRST };

struct helper {
    MPI_Comm comm;
    int source;
    sem_t begins;
};

static long long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void *receive(void *argument)
{
    struct helper *helper = argument;
    int word;
    /* The first thread goes on once this one is counted among those that call MPI. */
    MPI_Comm_rank(helper->comm, &word);
    sem_post(&helper->begins);
    MPI_Recv(&word, 1, MPI_INT, helper->source, TO_HELPER, helper->comm, MPI_STATUS_IGNORE);
    return NULL;
}

static void start(pthread_t *thread, struct helper *helper)
{
    sem_init(&helper->begins, 0, 0);
    pthread_create(thread, NULL, receive, helper);
    sem_wait(&helper->begins);
}

static long long compute(void)
{
    volatile double x = 1;
    long long begin = now_ns();
    while (now_ns() - begin < SECONDS * 1000000000LL)
        for (int i = 0; i < 100000; i++)
            x = x * 1.0000001;
    return now_ns() - begin;
}

static long long computes(int rank)
{
    struct helper helper = {.source = 1 - rank};
    pthread_t thread;
    int word = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &helper.comm);
    start(&thread, &helper);
    long long ns = compute();
    MPI_Send(&word, 1, MPI_INT, helper.source, TO_HELPER, helper.comm);
    pthread_join(thread, NULL);
    MPI_Comm_free(&helper.comm);
    return ns;
}

/* Both threads of rank 0; gives what rank 1 says. */
static long long wait_twice(MPI_Comm comm)
{
    struct helper helper = {.comm = comm, .source = 1};
    pthread_t thread;
    long long ns = 0;
    start(&thread, &helper);
    MPI_Send(&ns, 1, MPI_LONG_LONG, 1, FROM_FIRST, MPI_COMM_WORLD);
    MPI_Recv(&ns, 1, MPI_LONG_LONG, 1, TO_FIRST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    pthread_join(thread, NULL);
    return ns;
}

static long long waits(int rank)
{
    MPI_Comm comm;
    long long ns = 0;
    int word = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (rank == 0)
        ns = wait_twice(comm);
    if (rank == 1) {
        MPI_Recv(&ns, 1, MPI_LONG_LONG, 0, FROM_FIRST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        long long begin = now_ns();
        nanosleep(&(struct timespec){.tv_sec = SECONDS}, NULL);
        ns = now_ns() - begin;
        MPI_Send(&ns, 1, MPI_LONG_LONG, 0, TO_FIRST, MPI_COMM_WORLD);
        MPI_Send(&word, 1, MPI_INT, 0, TO_HELPER, comm);
    }
    MPI_Comm_free(&comm);
    return ns;
}

int main(int argc, char **argv)
{
    int granted, rank;
    const char *mode = argc == 2 ? argv[1] : "";
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &granted);
    if (granted != MPI_THREAD_MULTIPLE)
        return 3;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    long long ns = strcmp(mode, "waits") == 0 ? waits(rank) : computes(rank);
    MPI_Finalize();
    if (rank == 0)
        printf("%lld\n", ns);
    return 0;
}
