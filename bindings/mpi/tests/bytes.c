/* Every byte rule once or more. The counts per rank are in run.py. */
#include <mpi.h>
#include <stdlib.h>

enum { ROOM = 4096 };
static int out[ROOM], in[ROOM];
static int rank, size;

static void vectors(int *counts, int *places, int first)
{
    for (int i = 0, place = 0; i < size; place += counts[i++]) {
        counts[i] = first + i;
        places[i] = place;
    }
}

static void all_to_all(void)
{
    int counts[64], places[64], byte_places[64], incoming[64], incoming_places[64];
    MPI_Datatype types[64];
    vectors(counts, places, 1);
    for (int i = 0; i < size; i++) {
        incoming[i] = rank + 1;
        incoming_places[i] = i * (rank + 1);
        byte_places[i] = 16 * i;
        types[i] = MPI_SHORT;
    }
    MPI_Alltoall(out, 2, MPI_INT, in, 2, MPI_INT, MPI_COMM_WORLD);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 3, MPI_INT, MPI_COMM_WORLD);
    MPI_Alltoallv(out, counts, places, MPI_INT, in, incoming, incoming_places, MPI_INT, MPI_COMM_WORLD);
    int ones[64];
    for (int i = 0; i < size; i++)
        ones[i] = 2;
    MPI_Alltoallw(out, ones, byte_places, types, in, ones, byte_places, types, MPI_COMM_WORLD);
}

static void gathers(void)
{
    int counts[64], places[64];
    vectors(counts, places, 1);
    MPI_Gather(rank == 0 ? MPI_IN_PLACE : out, 4, MPI_INT, in, 4, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Gatherv(rank == 1 ? MPI_IN_PLACE : out, rank + 1, MPI_INT, in, counts, places, MPI_INT, 1, MPI_COMM_WORLD);
    MPI_Scatter(out, 5, MPI_INT, rank == 0 ? MPI_IN_PLACE : in, 5, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Scatterv(out, counts, places, MPI_INT, rank == 1 ? MPI_IN_PLACE : in, rank + 1, MPI_INT, 1, MPI_COMM_WORLD);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 6, MPI_INT, MPI_COMM_WORLD);
    MPI_Allgather(out, 6, MPI_INT, in, 6, MPI_INT, MPI_COMM_WORLD);
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, counts, places, MPI_INT, MPI_COMM_WORLD);
}

static void reductions(void)
{
    int counts[64], places[64];
    MPI_Request request;
    vectors(counts, places, 1);
    MPI_Reduce_scatter(out, in, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Reduce_scatter_block(out, in, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Scan(out, in, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Exscan(out, in, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Iallreduce(out, in, 5, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void types(void)
{
    /* The second type may well get the handle of the first. */
    for (int length = 1; length <= 3; length++) {
        MPI_Datatype type;
        MPI_Type_contiguous(length, MPI_DOUBLE, &type);
        MPI_Type_commit(&type);
        MPI_Sendrecv(out, 1, type, rank, 0, in, 1, type, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Type_free(&type);
    }
    MPI_Sendrecv_replace(in, 7, MPI_CHAR, rank, 0, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void persistent(void)
{
    MPI_Request requests[2];
    MPI_Recv_init(in, 3, MPI_INT, rank, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(out, 3, MPI_INT, rank, 1, MPI_COMM_WORLD, &requests[1]);
    for (int i = 0; i < 2; i++) {
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

static void ring(void)
{
    MPI_Comm ring;
    int periodic = 1;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
    MPI_Neighbor_allgather(out, 3, MPI_INT, in, 3, MPI_INT, ring);
    MPI_Neighbor_alltoall(out, 3, MPI_INT, in, 3, MPI_INT, ring);
    MPI_Comm_free(&ring);
}

static void one_sided(void)
{
    MPI_Win window;
    MPI_Win_create(in, sizeof in, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    MPI_Put(out, 6, MPI_INT, rank, 0, 6, MPI_INT, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
}

static void file(const char *path)
{
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_write_at(file, 40 * rank, out, 10, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_write_at_all(file, 40 * rank, out, 9, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_read(file, in, 8, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

/* Runs inside MPI_Allreduce, so what it calls is not counted. */
static void adds(void *from, void *to, int *length, MPI_Datatype *type)
{
    int bytes;
    MPI_Type_size(*type, &bytes);
    for (int i = 0; i < *length; i++)
        ((int *)to)[i] += ((int *)from)[i];
}

static void own_operator(void)
{
    MPI_Op op;
    MPI_Op_create(adds, 1, &op);
    MPI_Allreduce(out, in, 2, MPI_INT, op, MPI_COMM_WORLD);
    MPI_Op_free(&op);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    all_to_all();
    gathers();
    reductions();
    types();
    persistent();
    ring();
    one_sided();
    file(argv[1]);
    own_operator();
    MPI_Finalize();
    return 0;
}
