/* Collectives of MPI ranks on one host, timed for `sapwood bench collectives`.
 *
 *     ranks FOLDER
 *
 * Each rank reads orders from the named pipe FOLDER/RANK, one a line: an operation, bytes, rounds;
 * or end.
 * It sleeps in the read between them, so that ranks without an order use no processor. A barrier
 * comes before each round, outside of its time. Rank 0 prints an empty line when all ranks are
 * there, and for each order the nanoseconds of its rounds in one line: of a broadcast from the
 * root's begin until the last other rank has the value, else from the last rank's begin until the
 * last rank's end. A wrong value ends all ranks. */
#include <fcntl.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LINE_BYTES = 256, ROUNDS_MAX = 100000, PERIOD = 1021 };

struct order {
    char operation[32];
    size_t bytes;
    int rounds;
};

static int rank, ranks;
static int64_t *own, *result;
static size_t room;

static int64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void fail(const char *what)
{
    fprintf(stderr, "rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static int64_t value_at(size_t at, int round)
{
    return (int64_t)(at % PERIOD) + round + 1;
}

static void prepare(const struct order *order, size_t count, int round)
{
    int is_sum = strcmp(order->operation, "allreduce") == 0;
    if (order->bytes > room) {
        room = order->bytes;
        own = realloc(own, room);
        result = realloc(result, room);
        if (own == NULL || result == NULL)
            fail("out of memory");
    }
    for (size_t at = 0; at < count; at++) {
        own[at] = value_at(at, round) * (is_sum ? rank + 1 : 1);
        result[at] = -1;
    }
}

static int64_t *carry_out(const struct order *order, size_t count)
{
    if (strcmp(order->operation, "broadcast") == 0) {
        int64_t *value = rank == 0 ? own : result;
        MPI_Bcast(value, (int)count, MPI_INT64_T, 0, MPI_COMM_WORLD);
        return value;
    }
    if (strcmp(order->operation, "allreduce") == 0) {
        MPI_Allreduce(own, result, (int)count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        return result;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return NULL;
}

static void check(const struct order *order, const int64_t *value, size_t count, int round)
{
    int is_sum = strcmp(order->operation, "allreduce") == 0;
    int64_t weight = is_sum ? (int64_t)ranks * (ranks + 1) / 2 : 1;
    for (size_t at = 0; value != NULL && at < count; at++)
        if (value[at] != value_at(at, round) * weight)
            fail("a wrong value");
}

static void report(const struct order *order, const int64_t *begins, int64_t *ends)
{
    static int64_t starts[ROUNDS_MAX], lasts[ROUNDS_MAX];
    int is_broadcast = strcmp(order->operation, "broadcast") == 0;
    /* Only the root's begin counts, and the ends of the others. */
    if (is_broadcast && rank == 0)
        memset(ends, 0, (size_t)order->rounds * sizeof *ends);
    MPI_Reduce(begins, starts, order->rounds, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(ends, lasts, order->rounds, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank != 0)
        return;
    for (int round = 0; round < order->rounds; round++) {
        int64_t start = is_broadcast ? begins[round] : starts[round];
        printf("%" PRId64 " ", lasts[round] - start);
    }
    printf("\n");
    fflush(stdout);
}

static void serve(const struct order *order)
{
    static int64_t begins[ROUNDS_MAX], ends[ROUNDS_MAX];
    size_t count = order->bytes / sizeof(int64_t);
    for (int round = 0; round < order->rounds; round++) {
        prepare(order, count, round);
        MPI_Barrier(MPI_COMM_WORLD);
        begins[round] = nanoseconds();
        const int64_t *value = carry_out(order, count);
        ends[round] = nanoseconds();
        check(order, value, count, round);
    }
    report(order, begins, ends);
}

/* The pipe from the benchmark, which does not wait for a writer that is gone. */
static FILE *open_orders(const char *path)
{
    int descriptor = open(path, O_RDONLY | O_NONBLOCK);
    if (descriptor < 0 || fcntl(descriptor, F_SETFL, 0) < 0)
        fail("the named pipe cannot be read");
    FILE *orders = fdopen(descriptor, "r");
    if (orders == NULL)
        fail("the named pipe cannot be read");
    return orders;
}

int main(int argc, char **argv)
{
    char path[4096], line[LINE_BYTES];
    struct order order;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 2)
        fail("usage: ranks FOLDER");
    snprintf(path, sizeof path, "%s/%d", argv[1], rank);
    FILE *orders = open_orders(path);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("\n");
        fflush(stdout);
    }
    for (;;) {
        /* Without its last order the benchmark was killed, and other ranks may be in a collective. */
        if (fgets(line, sizeof line, orders) == NULL)
            fail("the benchmark has ended");
        if (strcmp(line, "end\n") == 0)
            break;
        if (sscanf(line, "%31s %zu %d", order.operation, &order.bytes, &order.rounds) != 3 ||
            order.rounds < 1 || order.rounds > ROUNDS_MAX)
            fail("an order that cannot be read");
        serve(&order);
    }
    MPI_Finalize();
    return 0;
}
