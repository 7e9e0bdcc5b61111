/* Switches counting off and on with MPI_Pcontrol. Of its reductions 10, 3 and 2 are counted, those in between not. */
#include <mpi.h>

static void reduce(int times)
{
    double one = 1, sum;
    while (times-- > 0)
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    reduce(10);
    MPI_Pcontrol(0);
    reduce(100);
    MPI_Pcontrol(1);
    reduce(3);
    MPI_Pcontrol(2);
    reduce(2);
    MPI_Pcontrol(0, "with", "further arguments");
    reduce(1000);
    MPI_Finalize();
    return 0;
}
