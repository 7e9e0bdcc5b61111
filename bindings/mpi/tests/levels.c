/* Switches counting off and on with MPI_Pcontrol. Of its reductions 10, 3 and 2 are counted, those in between not. Of
 * two receives it completes one while counting is off: that one has a call and no bytes. */
#include <mpi.h>

static void reduce(int times)
{
    double one = 1, sum;
    while (times-- > 0)
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void receive(int bytes, int is_off_meanwhile)
{
    char out[64] = {0}, in[64];
    int rank;
    MPI_Request request;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Irecv(in, sizeof in, MPI_BYTE, rank, 1, MPI_COMM_WORLD, &request);
    if (is_off_meanwhile)
        MPI_Pcontrol(0);
    MPI_Send(out, bytes, MPI_BYTE, rank, 1, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    reduce(10);
    receive(5, 1);
    reduce(100);
    MPI_Pcontrol(1);
    receive(9, 0);
    reduce(3);
    MPI_Pcontrol(2);
    reduce(2);
    MPI_Pcontrol(0, "with", "further arguments");
    reduce(1000);
    MPI_Finalize();
    return 0;
}
