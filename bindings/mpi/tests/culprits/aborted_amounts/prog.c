/* Of the collectives on row the last rank gives another amount to the twelfth, so that MPI ends the program in it:
 * less to a broadcast, and more to a reduction, of which another rank is the victim. As "types" all amounts are the
 * same, by two types; the last rank is killed before the twelfth, in which the others wait for it. */
#include <mpi.h>
#include <signal.h>
#include <string.h>

enum { STEPS = 20, ODD_STEP = 11, COUNT = 10, ROOM = 64 };
static double own[ROOM], all[ROOM];
static int rank, size;

/* The last rank goes on when each of the others is about to make its next call. */
static void wait_for_others(void)
{
    int word = 0;
    if (rank != size - 1)
        MPI_Send(&word, 1, MPI_INT, size - 1, 7, MPI_COMM_WORLD);
    for (int i = 0; rank == size - 1 && i < size - 1; i++)
        MPI_Recv(&word, 1, MPI_INT, i, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    MPI_Comm row;
    MPI_Datatype ten;
    MPI_Init(&argc, &argv);
    if (argc < 2)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &row);
    MPI_Comm_set_name(row, "row");
    MPI_Type_contiguous(COUNT, MPI_DOUBLE, &ten);
    MPI_Type_commit(&ten);
    for (int step = 0; step < STEPS; step++) {
        int is_odd = rank == size - 1 && step == ODD_STEP;
        wait_for_others();
        if (strcmp(argv[1], "bcast") == 0)
            MPI_Bcast(all, is_odd ? COUNT - 1 : COUNT, MPI_DOUBLE, 0, row);
        else if (strcmp(argv[1], "allreduce") == 0)
            MPI_Allreduce(own, all, is_odd ? COUNT + 1 : COUNT, MPI_DOUBLE, MPI_SUM, row);
        else if (is_odd)
            raise(SIGKILL);
        else
            MPI_Allgather(own, rank % 2 ? 1 : COUNT, rank % 2 ? ten : MPI_DOUBLE, all, 1, ten, row);
    }
    MPI_Type_free(&ten);
    MPI_Comm_free(&row);
    MPI_Finalize();
    return 0;
}
