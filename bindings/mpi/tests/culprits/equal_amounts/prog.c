/* Right programs whose ranks give other arguments: amounts that MPI lets differ, or that are the same by
 * other counts and types, in place, and where an argument means nothing. */
#include <mpi.h>

enum { RANKS = 4, ROOM = 1024 };
static double out[ROOM], in[ROOM];
static int rank;

/* An argument that only the root's call reads. */
#define OF_ROOT(value, root) (rank == (root) ? (value) : 777 + rank)

static void in_place(void)
{
    MPI_Allreduce(MPI_IN_PLACE, in, 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Reduce(rank == 1 ? MPI_IN_PLACE : out, in, 3, MPI_DOUBLE, MPI_SUM, 1, MPI_COMM_WORLD);
    MPI_Gather(rank == 2 ? MPI_IN_PLACE : out, rank == 2 ? 1 : 5, MPI_DOUBLE, in, OF_ROOT(5, 2), MPI_DOUBLE, 2,
               MPI_COMM_WORLD);
    MPI_Scatter(out, OF_ROOT(6, 3), MPI_DOUBLE, rank == 3 ? MPI_IN_PLACE : in, rank == 3 ? 1 : 6, MPI_DOUBLE, 3,
                MPI_COMM_WORLD);
    MPI_Allgather(MPI_IN_PLACE, 10 * rank, MPI_INT, in, 7, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Alltoall(MPI_IN_PLACE, 10 * rank, MPI_INT, in, 8, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Reduce_scatter_block(MPI_IN_PLACE, in, 9, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Scan(MPI_IN_PLACE, in, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Exscan(out, in, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void of_each_its_own(void)
{
    int counts[RANKS], places[RANKS], incoming[RANKS], incoming_places[RANKS], byte_places[RANKS];
    MPI_Datatype types[RANKS];
    for (int i = 0, place = 0; i < RANKS; place += counts[i++]) {
        counts[i] = i + 1;
        places[i] = place;
        incoming[i] = rank + 1;
        incoming_places[i] = i * (rank + 1);
        byte_places[i] = i * 64;
        types[i] = MPI_DOUBLE;
    }
    MPI_Gatherv(out, rank + 1, MPI_DOUBLE, in, counts, places, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Scatterv(out, counts, places, MPI_DOUBLE, in, rank + 1, MPI_DOUBLE, 1, MPI_COMM_WORLD);
    MPI_Allgatherv(out, rank + 1, MPI_DOUBLE, in, counts, places, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Alltoallv(out, counts, places, MPI_DOUBLE, in, incoming, incoming_places, MPI_DOUBLE, MPI_COMM_WORLD);
    /* Each sends as many to every rank as its own number says. */
    for (int i = 0; i < RANKS; i++)
        incoming[i] = rank + 1;
    MPI_Alltoallw(out, incoming, byte_places, types, in, counts, byte_places, types, MPI_COMM_WORLD);
    MPI_Reduce_scatter(out, in, counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/* The type's handle is that of one of another size before. */
static void by_other_types(int step)
{
    int count = step % 5 + 2;
    MPI_Datatype all;
    MPI_Type_contiguous(count, MPI_DOUBLE, &all);
    MPI_Type_commit(&all);
    MPI_Bcast(out, rank % 2 ? 1 : count, rank % 2 ? all : MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Gather(out, 1, all, in, OF_ROOT(count, 0), MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Allgather(out, rank % 2 ? count : 1, rank % 2 ? MPI_DOUBLE : all, in, 1, all, MPI_COMM_WORLD);
    MPI_Type_free(&all);
    MPI_Bcast(out, 0, rank % 2 ? MPI_INT : MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Allreduce(out, in, 0, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void started(void)
{
    MPI_Request requests[3];
    MPI_Iallreduce(out, in, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
    MPI_Igather(rank == 3 ? MPI_IN_PLACE : out, 5, MPI_DOUBLE, in + 100, OF_ROOT(5, 3), MPI_DOUBLE, 3, MPI_COMM_WORLD,
                &requests[1]);
    MPI_Ialltoall(MPI_IN_PLACE, rank, MPI_INT, in + 200, 2, MPI_DOUBLE, MPI_COMM_WORLD, &requests[2]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
}

/* The first group of two gives two each, the second three; a root gives to the other group alone. */
static void across(MPI_Comm between)
{
    int own = rank < 2 ? 2 : 3, other = rank < 2 ? 3 : 2;
    MPI_Allgather(out, own, MPI_DOUBLE, in, other, MPI_DOUBLE, between);
    MPI_Alltoall(out, own, MPI_DOUBLE, in, other, MPI_DOUBLE, between);
    int root = rank == 0 ? MPI_ROOT : rank == 1 ? MPI_PROC_NULL : 0;
    MPI_Bcast(out, rank == 1 ? 0 : 4, MPI_DOUBLE, root, between);
}

int main(int argc, char **argv)
{
    MPI_Comm side, between;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank < 2, rank, &side);
    MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, rank < 2 ? 2 : 0, 7, &between);
    for (int step = 0; step < 10; step++) {
        in_place();
        of_each_its_own();
        by_other_types(step);
        started();
        across(between);
    }
    MPI_Comm_free(&between);
    MPI_Comm_free(&side);
    MPI_Finalize();
    return 0;
}
