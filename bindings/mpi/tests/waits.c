/* Ranks that come late on purpose, and what they know of it themselves.
 *
 *     waits CASE FILE_BASE [COUNT]
 *
 * With WAITS_THREADED in the environment MPI is initialised for several threads.
 *
 * Each rank notes by its own clock, CLOCK_MONOTONIC of one host, when it entered and left the calls
 * in question, and writes these notes to FILE_BASE.RANK, a line each:
 *
 *     collective NAME COMMUNICATOR NUMBER ROOT BEGIN END      ROOT -1 none
 *     started NAME COMMUNICATOR NUMBER BEGIN WAIT_BEGIN WAIT_END
 *     send NAME TO TAG NUMBER BEGIN END
 *     receive NAME FROM TAG NUMBER CALL BEGIN END             CALL numbers the call of the rank
 *
 * in nanoseconds; ranks are those of MPI_COMM_WORLD. The notes are read beside the calls, so that
 * what a wait should be is known to as much as that takes. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static FILE *notes;
static int rank, size, calls;

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* A sleep stands for work: it takes no processor from others. */
static void work(double ms)
{
    nanosleep(&(struct timespec){.tv_sec = (time_t)(ms / 1e3), .tv_nsec = (long)(ms * 1e6) % 1000000000}, NULL);
}

#define NOTED(communicator, number, root, call) \
    do { \
        int64_t begin = now(); \
        call; \
        int64_t end = now(); \
        const char *name = #call; \
        fprintf(notes, "collective %.*s %s %d %d %ld %ld\n", (int)strcspn(name, "("), name, communicator, number, root, \
                (long)begin, (long)end); \
    } while (0)

/* In each round another rank is late, the last one most often. */
static int late_one(int round)
{
    return round % 4 == 0 ? round / 4 % size : size - 1;
}

static void collectives(int count)
{
    double one = rank, sum, all[64];
    for (int i = 0; i < count; i++) {
        work(rank == late_one(i) ? 6 : 1);
        int number = 6 * i;
        NOTED("world", number + 1, -1, MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
        work(rank == late_one(i + 1) ? 4 : 0);
        NOTED("world", number + 2, -1, MPI_Barrier(MPI_COMM_WORLD));
        work(rank == 0 ? 5 : rank == 1 ? 8 : 0);
        NOTED("world", number + 3, 0, MPI_Bcast(&sum, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD));
        work(rank == 0 ? 0 : 3);
        NOTED("world", number + 4, 0, MPI_Reduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD));
        NOTED("world", number + 5, -1, MPI_Allgather(&one, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, MPI_COMM_WORLD));
        NOTED("world", number + 6, 1, MPI_Gather(&one, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 1, MPI_COMM_WORLD));
    }
}

/* Two halves, a copy of one that is made before the first is used, and the odd ranks in reverse. */
static void communicators(int count)
{
    MPI_Comm half, copy, reverse;
    double one = 1, sum;
    MPI_Comm_split(MPI_COMM_WORLD, rank < size / 2, rank, &half);
    MPI_Comm_dup(half, &copy);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2 ? 1 : MPI_UNDEFINED, -rank, &reverse);
    const char *own = rank < size / 2 ? "low" : "high";
    for (int i = 0; i < count; i++) {
        work(rank == 0 || rank == size - 1 ? 4 : 0);
        /* Some ranks use the copy before the original. */
        if (i == 0 && rank % 2 == 0)
            work(2);
        NOTED(rank < size / 2 ? "low-copy" : "high-copy", i + 1, -1, MPI_Barrier(copy));
        work(rank == 1 ? 3 : 0);
        NOTED(own, i + 1, -1, MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, half));
        if (reverse != MPI_COMM_NULL)
            NOTED("odd", i + 1, -1, MPI_Barrier(reverse));
    }
    MPI_Comm_free(&half);
    MPI_Comm_free(&copy);
    if (reverse != MPI_COMM_NULL)
        MPI_Comm_free(&reverse);
}

/* Work between start and wait is no wait. */
static void started(int count)
{
    double one = 1, sum;
    for (int i = 0; i < count; i++) {
        MPI_Request request;
        work(rank == size - 1 ? 30 : 0);
        int64_t begin = now();
        MPI_Iallreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
        work(rank == 0 ? 3 : 0);
        int64_t wait_begin = now();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        fprintf(notes, "started MPI_Wait world %d %ld %ld %ld\n", i + 1, (long)begin, (long)wait_begin, (long)now());
    }
}

static void note_send(const char *name, int to, int tag, int number, int64_t begin)
{
    fprintf(notes, "send %s %d %d %d %ld %ld\n", name, to, tag, number, (long)begin, (long)now());
}

static void note_receive(const char *name, int from, int tag, int number, int call, int64_t begin, int64_t end)
{
    fprintf(notes, "receive %s %d %d %d %d %ld %ld\n", name, from, tag, number, call, (long)begin, (long)end);
}

/* Rank 0 receives from the others: by name, from any, by Irecv and Waitall; sends last are large. */
static void messages(int count)
{
    static char large[1 << 20];
    int value = rank, got[64];
    MPI_Status status;
    for (int i = 0; i < count; i++) {
        for (int other = 1; other < size; other++) {
            if (rank == other) {
                work(2 + other);
                int64_t begin = now();
                MPI_Send(&value, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
                note_send("MPI_Send", 0, 7, i + 1, begin);
            } else if (rank == 0) {
                int64_t begin = now();
                MPI_Recv(got, 1, MPI_INT, other, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                note_receive("MPI_Recv", other, 7, i + 1, ++calls, begin, now());
            }
        }
        if (rank > 0) {
            work(3 * rank);
            int64_t begin = now();
            int numbered = (i + 1) << 16 | rank;
            MPI_Send(&numbered, 1, MPI_INT, 0, 8, MPI_COMM_WORLD);
            note_send("MPI_Send", 0, 8, i + 1, begin);
        }
        for (int other = 1; rank == 0 && other < size; other++) {
            int64_t begin = now();
            /* What it takes is known although the program does not ask. A rank that is ahead may send
             * its next one before another's first. */
            MPI_Recv(got, 1, MPI_INT, MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            note_receive("MPI_Recv", got[0] & 0xffff, 8, got[0] >> 16, ++calls, begin, now());
        }
        if (rank == 0) {
            MPI_Request requests[64];
            for (int other = 1; other < size; other++)
                MPI_Irecv(got + other, 1, MPI_INT, other, 9, MPI_COMM_WORLD, &requests[other - 1]);
            int64_t begin = now();
            MPI_Waitall(size - 1, requests, MPI_STATUSES_IGNORE);
            int64_t end = now();
            calls++;
            for (int other = 1; other < size; other++)
                note_receive("MPI_Waitall", other, 9, i + 1, calls, begin, end);
            work(5);
            begin = now();
            MPI_Recv(large, sizeof large, MPI_CHAR, 1, 10, MPI_COMM_WORLD, &status);
            note_receive("MPI_Recv", 1, 10, i + 1, ++calls, begin, now());
        } else {
            work(4 * rank);
            int64_t begin = now();
            MPI_Request request;
            MPI_Isend(&value, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            note_send("MPI_Isend", 0, 9, i + 1, begin);
            begin = now();
            if (rank == 1) {
                MPI_Send(large, sizeof large, MPI_CHAR, 0, 10, MPI_COMM_WORLD);
                note_send("MPI_Send", 0, 10, i + 1, begin);
            }
        }
        int to = (rank + 1) % size, from = (rank + size - 1) % size;
        work(rank == size - 1 ? 4 : 0);
        int64_t begin = now();
        MPI_Sendrecv(&value, 1, MPI_INT, to, 11, got, 1, MPI_INT, from, 11, MPI_COMM_WORLD, &status);
        int64_t end = now();
        note_send("MPI_Sendrecv", to, 11, i + 1, begin);
        note_receive("MPI_Sendrecv", from, 11, i + 1, ++calls, begin, end);
    }
}

/* Large messages around the ring, which are not sent before they are received; the last rank comes
 * late, when the others are on time again. */
static void exchanges(int count)
{
    static char large[2][1 << 20];
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    for (int i = 0; i < count; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        work(rank == size - 1 ? 5 : 0);
        int64_t begin = now();
        MPI_Sendrecv(large[0], sizeof *large, MPI_CHAR, to, 12, large[1], sizeof *large, MPI_CHAR, from, 12,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        int64_t end = now();
        note_send("MPI_Sendrecv", to, 12, i + 1, begin);
        note_receive("MPI_Sendrecv", from, 12, i + 1, ++calls, begin, end);
    }
}

/* Receives of which it is not sure what they took: several from any source at once, and one from
 * any source while one is posted that is not. */
static void unsure(int count)
{
    int value = rank, got[64];
    for (int i = 0; i < count; i++) {
        if (rank > 0) {
            MPI_Send(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
            for (int message = 0; rank == 1 && message < 2; message++)
                MPI_Send(&value, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
            continue;
        }
        MPI_Request requests[64];
        MPI_Irecv(got, 1, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, requests);
        MPI_Recv(got + 1, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(requests, MPI_STATUS_IGNORE);
        for (int other = 1; other < size; other++)
            MPI_Irecv(got + other, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &requests[other - 1]);
        MPI_Waitall(size - 1, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Messages around a ring in one thread's own channel. The last rank is late. */
static void around(int tag, int count, bool is_noted)
{
    int value = rank, got, to = (rank + 1) % size, from = (rank + size - 1) % size;
    for (int i = 0; i < count; i++) {
        work(rank == size - 1 ? 4 : 0);
        int64_t begin = now();
        MPI_Request request;
        MPI_Isend(&value, 1, MPI_INT, to, tag, MPI_COMM_WORLD, &request);
        if (is_noted)
            note_send("MPI_Isend", to, tag, i + 1, begin);
        begin = now();
        MPI_Recv(&got, 1, MPI_INT, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (is_noted)
            note_receive("MPI_Recv", from, tag, i + 1, 0, begin, now());
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static void *beside(void *count)
{
    around(2, *(int *)count, true);
    return NULL;
}

static void *after(void *count)
{
    around(1, *(int *)count, false);
    return NULL;
}

/* Two threads, each with a channel of its own, then a second one in the channel of the first. */
static void threads(int count)
{
    pthread_t other;
    pthread_create(&other, NULL, beside, &count);
    around(1, count, true);
    pthread_join(other, NULL);
    pthread_create(&other, NULL, after, &count);
    pthread_join(other, NULL);
}

/* Collectives that have completed when they are started, of one process and of all: MPI may give all
 * of them one handle, and small sends the same. The last rank's message is late. */
static void completed(int count)
{
    double one = 1, other = 2;
    int value = rank, got, to = (rank + 1) % size, from = (rank + size - 1) % size;
    char nothing = 0;
    for (int i = 0; i < count; i++) {
        MPI_Request requests[2], broadcast;
        MPI_Iallreduce(MPI_IN_PLACE, &one, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF, &requests[0]);
        MPI_Iallreduce(MPI_IN_PLACE, &other, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Ibcast(&nothing, 0, MPI_BYTE, size - 1, MPI_COMM_WORLD, &broadcast);
        work(rank == size - 1 ? 4 : 0);
        MPI_Isend(&value, 1, MPI_INT, to, 13, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(&got, 1, MPI_INT, from, 13, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Wait(&broadcast, MPI_STATUS_IGNORE);
    }
}

/* More named communicators than a rank has places for those that it calls on. */
static void named(int count)
{
    enum { COPIES = 100 };
    MPI_Comm copies[COPIES];
    double one = 1, sum;
    for (int copy = 0; copy < COPIES; copy++) {
        char name[16];
        MPI_Comm_dup(MPI_COMM_WORLD, &copies[copy]);
        snprintf(name, sizeof name, "grid-%d", copy);
        MPI_Comm_set_name(copies[copy], name);
    }
    for (int i = 0; i < count; i++)
        for (int copy = 0; copy < COPIES; copy++)
            MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, copies[copy]);
    for (int copy = 0; copy < COPIES; copy++)
        MPI_Comm_free(&copies[copy]);
}

/* Many quick calls, which overrun small rings, then some slow ones. */
static void many(int count)
{
    for (int i = 0; i < count; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 20; i++) {
        work(rank == size - 1 ? 5 : 0);
        NOTED("world", count + i + 1, -1, MPI_Barrier(MPI_COMM_WORLD));
    }
}

/* All ranks alike: each in turn is late, by more than what the machine adds. */
static void even(int count)
{
    double one = 1, sum;
    for (int i = 0; i < count; i++) {
        work(rank == i % size ? 10 : 5);
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
}

/* The last rank leaves out a broadcast, which no rank waits for: from then on its calls meet others. */
static void mixed(int count)
{
    int word = 0, sum;
    for (int i = 0; i < count; i++) {
        if (rank != size - 1 || i != count / 2)
            MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
}

/* The same of calls that are all alike, on a communicator of its own that is freed. */
static void fewer(int count)
{
    MPI_Comm row;
    int word = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &row);
    MPI_Comm_set_name(row, "row");
    for (int i = 0; i < count; i++)
        if (rank != size - 1 || i != count / 2)
            MPI_Bcast(&word, 1, MPI_INT, 0, row);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_free(&row);
}

/* The same of neighbours in a line, of which the last one only receives. */
static void line(int count)
{
    MPI_Comm row;
    int below = rank - 1, above = rank + 1, weight = 1, word = rank, got = 0;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, rank > 0, &below, &weight, rank < size - 1, &above, &weight,
                                   MPI_INFO_NULL, 0, &row);
    MPI_Comm_set_name(row, "row");
    for (int i = 0; i < count; i++)
        if (rank != size - 1 || i != count / 2)
            MPI_Neighbor_allgather(&word, 1, MPI_INT, &got, 1, MPI_INT, row);
    MPI_Comm_free(&row);
}

/* The same of a broadcast from one rank to a group of all others. */
static void across(int count)
{
    MPI_Comm side, between;
    int word = rank;
    MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &side);
    MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, rank == 0, 7, &between);
    MPI_Comm_set_name(between, "row");
    for (int i = 0; i < count; i++)
        if (rank != size - 1 || i != count / 2)
            MPI_Bcast(&word, 1, MPI_INT, rank == 0 ? MPI_ROOT : 0, between);
    MPI_Comm_free(&between);
    MPI_Comm_free(&side);
}

/* All ranks in all kinds of collectives whose waits are not told, as they should be. */
static void untold(int count)
{
    MPI_Comm ring, side, between;
    int word = rank, got[2], dims[1] = {size}, periods[1] = {1};
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &ring);
    MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &side);
    MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, rank == 0, 7, &between);
    for (int i = 0; i < count; i++) {
        MPI_Request request;
        work(rank == i % size ? 5 : 1);
        MPI_Neighbor_allgather(&word, 1, MPI_INT, got, 1, MPI_INT, ring);
        MPI_Ineighbor_allgather(&word, 1, MPI_INT, got, 1, MPI_INT, ring, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Bcast(&word, 1, MPI_INT, rank == 0 ? MPI_ROOT : 0, between);
        /* From the second group's second rank: the others of its group take no part in what is sent. */
        MPI_Bcast(&word, 1, MPI_INT, rank == 2 ? MPI_ROOT : rank == 0 ? 1 : MPI_PROC_NULL, between);
        MPI_Barrier(between);
    }
    MPI_Comm_free(&between);
    MPI_Comm_free(&side);
    MPI_Comm_free(&ring);
}

/* A call that makes a communicator, and a collective, are refused at one rank, which goes on without them. */
static void refused(int count)
{
    MPI_Comm first, second, third;
    int word = rank, sum, dims[2] = {50, 50}, periods[2] = {0, 0};
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == 1 && MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &first) == MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Comm_dup(MPI_COMM_WORLD, &first);
    MPI_Comm_dup(MPI_COMM_WORLD, &second);
    MPI_Comm_dup(second, &third);
    if (rank == 1 && MPI_Allreduce(dims, periods, 2, MPI_INT, MPI_OP_NULL, first) == MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 0; i < count; i++) {
        MPI_Bcast(&word, 1, MPI_INT, 0, first);
        MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, second);
        MPI_Barrier(third);
        MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Comm_free(&first);
    MPI_Comm_free(&second);
    MPI_Comm_free(&third);
}

/* The last rank takes itself for the root of a broadcast. */
static void roots(int count)
{
    int word = 0;
    for (int i = 0; i < count; i++)
        MPI_Bcast(&word, 1, MPI_INT, rank == size - 1 && i == count / 2 ? rank : 0, MPI_COMM_WORLD);
}

/* With a root that the others have not given either: the last rank waits for a rank that has gone on. */
static void astray(int count)
{
    int word = 0;
    for (int i = 0; i < count; i++)
        MPI_Bcast(&word, 1, MPI_INT, rank == size - 1 && i == count / 2 ? rank - 1 : 0, MPI_COMM_WORLD);
}

/* The root comes to the last broadcast once a file is there; then a barrier. A rank that is stopped in between is still
 * in the broadcast when the others have left it. */
static void left(int count)
{
    int word = 0;
    const char *go = getenv("WAITS_GO");
    alarm(200);
    for (int i = 0; i < count; i++)
        MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD);
    while (rank == 0 && go != NULL && access(go, F_OK) != 0)
        work(10);
    MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

enum { MADE = 12 };

/* Every way to make a communicator, those of MPI_COMM_WORLD first: all ranks are in each. */
static void make(MPI_Comm made[MADE])
{
    int dims[2] = {2, size / 2}, periods[2] = {0, 0}, remain[2] = {1, 1}, low = rank < size / 2;
    MPI_Comm half, between, copy, none;
    MPI_Group all;
    MPI_Request requests[2];
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Comm_dup(MPI_COMM_WORLD, &made[0]);
    /* A call that makes one for some only counts at the others, too. */
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2 ? 0 : MPI_UNDEFINED, 0, &none);
    MPI_Comm_idup(MPI_COMM_WORLD, &made[1], &requests[0]);
    MPI_Comm_idup(MPI_COMM_WORLD, &made[2], &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &made[3]);
    MPI_Comm_create(MPI_COMM_WORLD, all, &made[4]);
    MPI_Comm_create_group(MPI_COMM_WORLD, all, 7, &made[5]);
    MPI_Comm_create_group(MPI_COMM_WORLD, all, 7, &made[6]);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &made[7]);
    MPI_Cart_sub(made[7], remain, &made[8]);
    /* Of two groups, of a copy of that, and of that of one of them alone. */
    MPI_Comm_split(MPI_COMM_WORLD, low, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? size / 2 : 0, 9, &between);
    MPI_Intercomm_merge(between, !low, &made[9]);
    MPI_Comm_dup(between, &copy);
    MPI_Intercomm_merge(copy, !low, &made[10]);
    MPI_Comm_dup(made[10], &made[11]);
    MPI_Comm_free(&between);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&half);
    if (none != MPI_COMM_NULL)
        MPI_Comm_free(&none);
    MPI_Group_free(&all);
}

/* Communicators that the ranks do not use in the order in which they made them; one function on each. */
static void made(int count)
{
    MPI_Comm all[MADE];
    for (int i = 0; i < count; i++) {
        int value = rank, sum;
        make(all);
        for (int j = 0; j < MADE; j++)
            MPI_Comm_set_name(all[(j * 5 + rank) % MADE], "used");
        for (int j = 0; j < MADE; j++)
            j % 2 == 0 ? MPI_Bcast(&value, 1, MPI_INT, 0, all[j]) : MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, all[j]);
        for (int j = 0; j < MADE; j++)
            MPI_Comm_free(&all[j]);
    }
}

struct maker {
    MPI_Comm parent;
    int number, count;
};

/* Threads of a rank that are not at one speed. */
static void *makes(void *argument)
{
    struct maker *maker = argument;
    for (int i = 0; i < maker->count; i++) {
        MPI_Comm copy;
        int value = rank, sum;
        work((rank + maker->number) % 2 ? 2 : 0);
        MPI_Comm_dup(maker->parent, &copy);
        maker->number ? MPI_Bcast(&value, 1, MPI_INT, 0, copy) : MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, copy);
        MPI_Comm_free(&copy);
    }
    return NULL;
}

/* Two threads of each rank make communicators of one group. */
static void makers(int count)
{
    pthread_t other;
    struct maker first = {.number = 0, .count = count}, second = {.number = 1, .count = count};
    MPI_Comm_dup(MPI_COMM_WORLD, &first.parent);
    MPI_Comm_dup(MPI_COMM_WORLD, &second.parent);
    pthread_create(&other, NULL, makes, &first);
    makes(&second);
    pthread_join(other, NULL);
    MPI_Comm_free(&first.parent);
    MPI_Comm_free(&second.parent);
}

/* More threads than had a ring once, each with a communicator of its own. */
static void crew(int count)
{
    enum { CREW = 8 };
    pthread_t others[CREW];
    struct maker makers[CREW];
    for (int i = 0; i < CREW; i++) {
        makers[i] = (struct maker){.number = i, .count = count};
        MPI_Comm_dup(MPI_COMM_WORLD, &makers[i].parent);
    }
    for (int i = 1; i < CREW; i++)
        pthread_create(&others[i], NULL, makes, &makers[i]);
    makes(&makers[0]);
    for (int i = 1; i < CREW; i++)
        pthread_join(others[i], NULL);
    for (int i = 0; i < CREW; i++)
        MPI_Comm_free(&makers[i].parent);
}

/* A broadcast that fails at the last rank alone, which sends it to no other, and is not made again. */
static void truncated(int count)
{
    int words[2] = {rank, rank}, sum;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < count; i++) {
        MPI_Bcast(words, i == count / 2 && rank == size - 1 ? 1 : 2, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Allreduce(words, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
}

/* The last rank is late; the one before it waits for its message, and comes to the barrier last. */
static void passed_on(int count)
{
    int word = 0;
    for (int i = 0; i < count; i++) {
        work(rank == size - 1 ? 25 : 0);
        if (rank == size - 1)
            MPI_Send(&word, 1, MPI_INT, size - 2, 14, MPI_COMM_WORLD);
        if (rank == size - 2)
            MPI_Recv(&word, 1, MPI_INT, size - 1, 14, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* Communicators that are used for one collective, and freed, of this process alone. */
static void come_and_go(int count)
{
    for (int i = 0; i < count; i++) {
        MPI_Comm copy;
        int value = rank, sum;
        MPI_Comm_dup(MPI_COMM_SELF, &copy);
        MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, copy);
        MPI_Comm_free(&copy);
    }
}

/* The same of all, with a message; the last rank is late to some. */
static void come_and_go_together(int count)
{
    for (int i = 0; i < count; i++) {
        MPI_Comm copy;
        char label[32];
        int word = i;
        snprintf(label, sizeof label, "copy-%d", i);
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        work(rank == size - 1 && i % 50 == 49 ? 20 : 0);
        NOTED(label, 1, -1, MPI_Barrier(copy));
        int64_t begin = now();
        if (rank == 0) {
            MPI_Send(&word, 1, MPI_INT, size - 1, i, copy);
            note_send("MPI_Send", size - 1, i, 1, begin);
        }
        if (rank == size - 1) {
            MPI_Recv(&word, 1, MPI_INT, 0, i, copy, MPI_STATUS_IGNORE);
            note_receive("MPI_Recv", 0, i, 1, i, begin, now());
        }
        MPI_Comm_free(&copy);
    }
}

static void renewed(int count)
{
    come_and_go(10000);
    come_and_go_together(count);
}

/* More than a rank has places for. */
static void reused(int count)
{
    come_and_go(66000);
    come_and_go_together(count);
}

/* As many as the MPI allows that live at once, up to `count`. */
static void alive(int count)
{
    MPI_Comm *all = calloc((size_t)count, sizeof *all);
    int value = rank, sum, made = 0;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    while (made < count && MPI_Comm_dup(MPI_COMM_WORLD, &all[made]) == MPI_SUCCESS)
        made++;
    for (int i = 0; i < made; i++)
        MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, all[i]);
    fprintf(notes, "alive %d\n", made);
    for (int i = 0; i < made; i++)
        MPI_Comm_free(&all[i]);
    free(all);
}

enum { FULL_RANKS = 2, APART = 200, SHARED = 100, PLACES = 65534, RING_RECORDS_MAX = 65536 };

/* Communicators of all that are made while one rank has no place: as many live in it, or are named in its ring, which
 * has to hold as many records. Behind that it has all its places again. */
static void made_without_place(int full, MPI_Comm shared[SHARED])
{
    MPI_Comm apart[APART];
    int value = rank, sum;
    if (rank == full) {
        for (int i = 0; i < APART; i++)
            MPI_Comm_dup(MPI_COMM_SELF, &apart[i]);
        come_and_go(PLACES);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < SHARED; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &shared[i]);
    if (rank == full) {
        for (int i = 0; i < RING_RECORDS_MAX; i++)
            MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, apart[0]);
        for (int i = 0; i < APART; i++)
            MPI_Comm_free(&apart[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Two ranks in turn have no place for what all make. Later they have, and call on these communicators; then windows
 * are made on those that the first one had no place for, each behind a call that fails. */
static void full(int count)
{
    MPI_Comm shared[FULL_RANKS][SHARED];
    int value = rank, sum;
    for (int one = 0; one < FULL_RANKS; one++)
        made_without_place(one, shared[one]);
    for (int i = 0; i < count; i++)
        MPI_Bcast(&value, 1, MPI_INT, 0, shared[0][i]);
    for (int i = 0; i < count; i++)
        MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, shared[1][i]);
    for (int i = 0; i < count; i++) {
        MPI_Win window;
        MPI_Comm_set_errhandler(shared[0][i], MPI_ERRORS_RETURN);
        if (MPI_Win_create(&value, -1, 1, MPI_INFO_NULL, shared[0][i], &window) == MPI_SUCCESS)
            MPI_Abort(MPI_COMM_WORLD, 2);
        MPI_Win_create(&value, sizeof value, 1, MPI_INFO_NULL, shared[0][i], &window);
        MPI_Win_free(&window);
    }
    for (int i = 0; i < FULL_RANKS * SHARED; i++)
        MPI_Comm_free(&shared[i / SHARED][i % SHARED]);
}

/* One is late, and dies half-way. */
static void dies(int count)
{
    for (int i = 0; i < count; i++) {
        work(rank == size - 1 ? 25 : 0);
        if (rank == size - 1 && i == count / 2) {
            fclose(notes);
            kill(getpid(), 9);
        }
        NOTED("world", i + 1, -1, MPI_Barrier(MPI_COMM_WORLD));
        fflush(notes);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(int count);
        int count;
    } cases[] = {{"collectives", collectives, 20}, {"communicators", communicators, 20}, {"started", started, 20},
                 {"messages", messages, 10}, {"unsure", unsure, 10}, {"many", many, 20000}, {"even", even, 200},
                 {"dies", dies, 40}, {"threads", threads, 20}, {"named", named, 5},
                 {"completed", completed, 20}, {"exchanges", exchanges, 10},
                 {"mixed", mixed, 20}, {"roots", roots, 20}, {"astray", astray, 20}, {"fewer", fewer, 20},
                 {"line", line, 20}, {"across", across, 20}, {"untold", untold, 20}, {"refused", refused, 20},
                 {"left", left, 5},
                 {"made", made, 5}, {"makers", makers, 20}, {"truncated", truncated, 20},
                 {"passed-on", passed_on, 40}, {"renewed", renewed, 1000}, {"reused", reused, 1000},
                 {"alive", alive, 10000}, {"crew", crew, 5}, {"full", full, SHARED}};
    char path[4096];
    int level = getenv("WAITS_THREADED") == NULL ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, provided;
    MPI_Init_thread(&argc, &argv, level, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 3)
        MPI_Abort(MPI_COMM_WORLD, 2);
    snprintf(path, sizeof path, "%s.%d", argv[2], rank);
    notes = fopen(path, "w");
    if (notes == NULL)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(argv[1], cases[i].name) == 0)
            cases[i].run(argc > 3 ? atoi(argv[3]) : cases[i].count);
    fclose(notes);
    MPI_Finalize();
    return 0;
}
