/* Switches counting off and on with MPI_Pcontrol. Of its reductions 10, 3 and 2 are counted, those in
 * between not. Of two receives it completes one while counting is off: that one has a call and no
 * bytes. Of the starts of its persistent requests those are counted that come while counting is on. A window that
 * is named "gone" is freed while it is off. */
#include <mpi.h>

enum { ROOM = 64 };
static char out[ROOM], in[ROOM];
static int rank;

static void reduce(int times)
{
    double one = 1, sum;
    while (times-- > 0)
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void receive(int bytes, int is_off_meanwhile)
{
    MPI_Request request;
    MPI_Irecv(in, ROOM, MPI_BYTE, rank, 1, MPI_COMM_WORLD, &request);
    if (is_off_meanwhile)
        MPI_Pcontrol(0);
    MPI_Send(out, bytes, MPI_BYTE, rank, 1, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void transfer(MPI_Request pair[2], int times)
{
    while (times-- > 0) {
        MPI_Startall(2, pair);
        MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
    }
}

static void make(MPI_Request pair[2], int bytes)
{
    MPI_Recv_init(in, ROOM, MPI_BYTE, rank, bytes, MPI_COMM_WORLD, &pair[0]);
    MPI_Send_init(out, bytes, MPI_BYTE, rank, bytes, MPI_COMM_WORLD, &pair[1]);
}

static void free_both(MPI_Request pair[2])
{
    MPI_Request_free(&pair[1]);
    MPI_Request_free(&pair[0]);
}

/* Of 7 bytes 1, 2 and 3 starts are counted, of 11 one: then these are freed while counting is off, and
 * others made, to which MPI may give the same handles. A receive of 5 bytes is started before and
 * completed meanwhile. */
static void persistent(void)
{
    MPI_Request kept[2], freed[2], made[2], pending[2];
    make(kept, 7);
    make(freed, 11);
    make(pending, 5);
    transfer(kept, 1);
    transfer(freed, 1);
    MPI_Start(&pending[0]);
    MPI_Pcontrol(0);
    transfer(kept, 4);
    MPI_Start(&pending[1]);
    MPI_Waitall(2, pending, MPI_STATUSES_IGNORE);
    free_both(freed);
    make(made, 13);
    MPI_Pcontrol(1);
    transfer(kept, 2);
    transfer(pending, 1);
    transfer(made, 1);
    MPI_Pcontrol(0);
    MPI_Pcontrol(1);
    transfer(kept, 3);
    free_both(kept);
    free_both(pending);
    free_both(made);
}

int main(int argc, char **argv)
{
    MPI_Win window;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_name(MPI_COMM_WORLD, "stays");
    MPI_Win_create(out, ROOM, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_set_name(window, "gone");
    reduce(10);
    receive(5, 1);
    MPI_Win_free(&window);
    reduce(100);
    MPI_Pcontrol(1);
    receive(9, 0);
    persistent();
    reduce(3);
    MPI_Pcontrol(2);
    reduce(2);
    MPI_Pcontrol(0, "with", "further arguments");
    reduce(1000);
    MPI_Finalize();
    return 0;
}
