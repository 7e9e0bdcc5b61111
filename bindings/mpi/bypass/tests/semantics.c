/* What MPI promises beside sums: each scenario is a small program.
 *
 *   semantics SCENARIO       prints "SCENARIO ok" at rank 0, or what was wrong
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <mpi.h>

static int rank, size;

static void fail(const char *what, long at)
{
    printf("rank %d: %s (%ld)\n", rank, what, at);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void pause_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* The sum of `first + rank` over all ranks, at every element. */
static void reduce_and_check(MPI_Comm comm, long first, int count, int root)
{
    int me, members;
    long *in = malloc((size_t)count * sizeof *in), *out = malloc((size_t)count * sizeof *out);
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &members);
    for (int i = 0; i < count; i++)
        in[i] = first + me + i;
    MPI_Reduce(in, out, count, MPI_LONG, MPI_SUM, root, comm);
    memset(in, 0xff, (size_t)count * sizeof *in);
    for (int i = 0; i < count && me == root; i++)
        if (out[i] != members * (first + i) + (long)members * (members - 1) / 2)
            fail("wrong sum", i);
    free(in);
    free(out);
}

/* Ranks run ahead of a sleeping root beyond the ring, with all sizes and changing roots. */
static void ahead(void)
{
    for (int round = 0; round < 6; round++) {
        if (rank == round % size)
            pause_ms(30);
        for (int i = 0; i < 150; i++)
            reduce_and_check(MPI_COMM_WORLD, i, 1 + i * 29, (round + i / 50) % size);
    }
}

/* Rank 1 can only come once rank 0, which waits for it in the reduction, has received. */
static void progress(void)
{
    enum { BYTES = 4 << 20 };
    char *buffer = malloc(BYTES);
    MPI_Request request;
    for (int i = 0; i < 20; i++) {
        if (rank == 0)
            MPI_Irecv(buffer, BYTES, MPI_BYTE, 1, 5, MPI_COMM_WORLD, &request);
        if (rank == 1)
            MPI_Ssend(buffer, BYTES, MPI_BYTE, 0, 5, MPI_COMM_WORLD);
        reduce_and_check(MPI_COMM_WORLD, i, 4, 0);
        if (rank == 0)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    free(buffer);
}

/* Many at once, each with instances under way when the next is used. */
static void communicators(void)
{
    enum { COMMUNICATORS = 256 };
    static MPI_Comm comms[COMMUNICATORS];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < COMMUNICATORS; i++)
            if (i % 3 == 0)
                MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[i]);
            else
                MPI_Comm_dup(i > 0 ? comms[i - 1] : MPI_COMM_WORLD, &comms[i]);
        for (int turn = 0; turn < 3; turn++)
            for (int i = 0; i < COMMUNICATORS; i++)
                reduce_and_check(comms[i], i, 1 + i % 70, (i + turn) % size);
        for (int i = 0; i < COMMUNICATORS; i++)
            MPI_Comm_free(&comms[i]);
    }
}

static void *one_thread(void *argument)
{
    MPI_Comm comm = *(MPI_Comm *)argument;
    for (int i = 0; i < 300; i++)
        reduce_and_check(comm, i, 1 + i % 200, i % size);
    return NULL;
}

static void threads(void)
{
    enum { THREADS = 4 };
    pthread_t ids[THREADS];
    MPI_Comm comms[THREADS];
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&ids[i], NULL, one_thread, &comms[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(ids[i], NULL);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&comms[i]);
}

/* Rank 1 is the root of reductions that it never calls: no other rank may wait for it. */
static void away(void)
{
    long one = 1, sum;
    for (int i = 0; i < 20 && rank != 1; i++)
        MPI_Reduce(&one, &sum, 1, MPI_LONG, MPI_SUM, 1, MPI_COMM_WORLD);
}

static void forks(void)
{
    for (int i = 0; i < 10; i++) {
        reduce_and_check(MPI_COMM_WORLD, i, 4, 0);
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        waitpid(child, NULL, 0);
    }
}

static void must_refuse(int code, const char *what)
{
    if (code == MPI_SUCCESS)
        fail(what, code);
}

/* Errors are returned as MPI's, and the communicator works afterwards. */
static void errors(void)
{
    long value = 1, sum = 0;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    must_refuse(MPI_Reduce(&value, &sum, 1, MPI_LONG, MPI_SUM, size, MPI_COMM_WORLD), "a root beyond the ranks");
    must_refuse(MPI_Reduce(&value, &sum, -1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD), "a negative count");
    must_refuse(MPI_Reduce(&value, &sum, 1, MPI_LONG, MPI_OP_NULL, 0, MPI_COMM_WORLD), "no operation");
    must_refuse(MPI_Reduce(&value, &sum, 1, MPI_DATATYPE_NULL, MPI_SUM, 0, MPI_COMM_WORLD), "no type");
    must_refuse(MPI_Reduce(&value, &sum, 1, MPI_DOUBLE, MPI_BAND, 0, MPI_COMM_WORLD), "bits of a double");
    must_refuse(MPI_Reduce(&value, &sum, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_NULL), "no communicator");
    if (getenv("BUFFERS") != NULL) {
        int code = MPI_Reduce(rank == 0 ? &sum : &value, &sum, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
        if ((code == MPI_SUCCESS) == (rank == 0))
            fail("two buffers that are one", code);
        int count = rank == 1 ? 2 : 1;
        long two[2] = {1, 2}, got[2];
        code = MPI_Reduce(two, got, count, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
        if ((code == MPI_SUCCESS) == (rank == 0))
            fail("different counts", code);
    }
    reduce_and_check(MPI_COMM_WORLD, 3, 5, 0);
}

/* A user's operation, a derived type and an inter-communicator go to the library. */
static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++)
        ((long *)inout)[i] += ((long *)in)[i];
}

static void others(void)
{
    MPI_Op op;
    MPI_Comm half, between;
    long one = 1, sum = 0;
    MPI_Op_create(add, 1, &op);
    for (int i = 0; i < 20; i++) {
        MPI_Reduce(&one, &sum, 1, MPI_LONG, op, 0, MPI_COMM_WORLD);
        if (rank == 0 && sum != size)
            fail("a user's operation", sum);
        reduce_and_check(MPI_COMM_WORLD, i, 3, i % size);
    }
    MPI_Op_free(&op);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 9, &between);
    MPI_Reduce(&one, &sum, 1, MPI_LONG, MPI_SUM, rank % 2 == 1 ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL, between);
    if (rank == 0 && sum != size / 2)
        fail("an inter-communicator", sum);
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
}

/* The last rank comes late to 50 reductions, and to 10 of a communicator in which it is the first and the root. */
static void late(void)
{
    MPI_Comm reversed;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    for (int i = 0; i < 60; i++) {
        if (rank == size - 1)
            pause_ms(5);
        reduce_and_check(i < 50 ? MPI_COMM_WORLD : reversed, i, 1, 0);
    }
    MPI_Comm_free(&reversed);
}

/* Ends itself by SIGKILL at a random instruction, while all reduce; makes the file BEGUN before. */
static void killed(void)
{
    const char *seed = getenv("SEED"), *begun = getenv("BEGUN");
    srand(seed != NULL ? (unsigned)atoi(seed) : 1u);
    int victim = rand() % size;
    long us = 1 + rand() % 20000;
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    struct itimerspec when = {.it_value = {0, us * 1000}};
    FILE *mark = rank == victim && begun != NULL ? fopen(begun, "w") : NULL;
    if (mark != NULL)
        fclose(mark);
    if (rank == victim && (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_settime(timer, 0, &when, NULL) != 0))
        fail("no timer", 0);
    for (int i = 0;; i++)
        reduce_and_check(MPI_COMM_WORLD, i, 1 + i * 37 % 3000, i / 7 % size);
}

static const struct {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    {"ahead", ahead}, {"progress", progress}, {"communicators", communicators}, {"threads", threads}, {"away", away},
    {"forks", forks}, {"errors", errors},     {"others", others},               {"killed", killed},
    {"late", late},
};

int main(int argc, char **argv)
{
    int granted;
    const char *name = argc > 1 ? argv[1] : "";
    int wanted = strcmp(name, "threads") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, wanted, &granted);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    size_t i = 0;
    while (i < sizeof scenarios / sizeof scenarios[0] && strcmp(scenarios[i].name, name) != 0)
        i++;
    if (i == sizeof scenarios / sizeof scenarios[0])
        fail("no such scenario", 0);
    scenarios[i].run();
    if (rank == 0)
        printf("%s ok\n", name);
    MPI_Finalize();
    return 0;
}
