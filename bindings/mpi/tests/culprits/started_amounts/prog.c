/* Of the collectives that are started on row the last rank gives another amount to the twelfth: less to a
 * broadcast, or more to a reduction, which fail in a wait, if MPI takes notice. As "refused" it gives less to a
 * reduction, without an operation, so that MPI ends the program in the call that starts it. So it does as
 * "ireduce_scatter_block", "ireduce_scatter" and "ialltoall", of the last one without a type to receive.
 *
 * Behind that, "meeting" has row be one of which the last rank's shim keeps what it knows in the place where it keeps
 * that of MPI_COMM_WORLD: these two take turns there. */
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 20, ODD_STEP = 11, COUNT = 10, EACH = 5, RANKS_MAX = 4, ROOM = 64, OTHERS_MAX = 2000 };
static double own[ROOM], all[ROOM];
/* Until the collective that is started with them has completed. */
static int counts[RANKS_MAX];

static void start_refused(const char *call, int is_odd, MPI_Comm row, MPI_Request *request)
{
    MPI_Op operation = is_odd ? MPI_OP_NULL : MPI_SUM;
    int each = is_odd ? EACH - 1 : EACH;
    for (int i = 0; i < RANKS_MAX; i++)
        counts[i] = is_odd && i == RANKS_MAX - 1 ? EACH - 2 : EACH;
    if (strcmp(call, "ireduce_scatter_block") == 0)
        MPI_Ireduce_scatter_block(own, all, each, MPI_FLOAT, operation, row, request);
    else if (strcmp(call, "ireduce_scatter") == 0)
        MPI_Ireduce_scatter(own, all, counts, MPI_FLOAT, operation, row, request);
    else if (strcmp(call, "ialltoall") == 0)
        MPI_Ialltoall(own, each, MPI_FLOAT, all, each, is_odd ? MPI_DATATYPE_NULL : MPI_FLOAT, row, request);
    else
        MPI_Iallreduce(own, all, is_odd ? COUNT - 1 : COUNT, MPI_DOUBLE, operation, row, request);
}

static void start(const char *call, int is_odd, MPI_Comm row, MPI_Request *request)
{
    if (strcmp(call, "ibcast") == 0)
        MPI_Ibcast(all, is_odd ? COUNT - 1 : COUNT, MPI_DOUBLE, 0, row, request);
    else if (strcmp(call, "iallreduce") == 0)
        MPI_Iallreduce(own, all, is_odd ? COUNT + 1 : COUNT, MPI_DOUBLE, MPI_SUM, row, request);
    else
        start_refused(call, is_odd, row, request);
}

/* As sapwood_cache_place of the shim has it. */
static unsigned cache_place(MPI_Comm comm)
{
    uint64_t handle = 0;
    memcpy(&handle, &comm, sizeof comm);
    return (unsigned)(handle * UINT64_C(0x9E3779B97F4A7C15) >> 58);
}

static MPI_Comm row_that_meets_the_world(int last)
{
    static MPI_Comm others[OTHERS_MAX];
    /* So that handles that are addresses do not follow one another at one distance. */
    static void *between[OTHERS_MAX];
    MPI_Comm row;
    for (int count = 0; count < OTHERS_MAX; count++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &row);
        int meets = cache_place(row) == cache_place(MPI_COMM_WORLD);
        MPI_Bcast(&meets, 1, MPI_INT, last, MPI_COMM_WORLD);
        others[count] = row;
        if (!meets) {
            between[count] = malloc(16 * (size_t)(count + 1));
            continue;
        }
        while (count-- > 0) {
            MPI_Comm_free(&others[count]);
            free(between[count]);
        }
        return row;
    }
    MPI_Abort(MPI_COMM_WORLD, 3);
    return MPI_COMM_NULL;
}

int main(int argc, char **argv)
{
    int rank, size, word = 0;
    MPI_Comm row;
    MPI_Init(&argc, &argv);
    if (argc < 2)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 2 && strcmp(argv[2], "meeting") == 0)
        row = row_that_meets_the_world(size - 1);
    else
        MPI_Comm_dup(MPI_COMM_WORLD, &row);
    MPI_Comm_set_name(row, "row");
    for (int step = 0; step < STEPS; step++) {
        MPI_Request request;
        int is_last = rank == size - 1;
        /* The last rank starts each once all others have started it. */
        for (int i = 0; is_last && i < size - 1; i++)
            MPI_Recv(&word, 1, MPI_INT, i, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        start(argv[1], is_last && step == ODD_STEP, row, &request);
        if (!is_last)
            MPI_Send(&word, 1, MPI_INT, size - 1, 7, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Comm_free(&row);
    MPI_Finalize();
    return 0;
}
