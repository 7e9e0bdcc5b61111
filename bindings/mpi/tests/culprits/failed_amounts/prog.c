/* MPI is told to return errors. Of the collectives on row the last rank gives another amount to the twelfth: less
 * to a broadcast, which fails at this rank, and more to a reduction, which fails at another one. The rank at which
 * a call has failed ends the program, as mpi4py does for an exception. */
#include <mpi.h>
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
    MPI_Init(&argc, &argv);
    if (argc < 2)
        MPI_Abort(MPI_COMM_WORLD, 2);
    int is_broadcast = strcmp(argv[1], "bcast") == 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &row);
    MPI_Comm_set_name(row, "row");
    MPI_Comm_set_errhandler(row, MPI_ERRORS_RETURN);
    for (int step = 0; step < STEPS; step++) {
        int is_odd = rank == size - 1 && step == ODD_STEP, error;
        wait_for_others();
        if (is_broadcast)
            error = MPI_Bcast(all, is_odd ? COUNT - 1 : COUNT, MPI_DOUBLE, 0, row);
        else
            error = MPI_Allreduce(own, all, is_odd ? COUNT + 1 : COUNT, MPI_DOUBLE, MPI_SUM, row);
        if (error == MPI_SUCCESS)
            continue;
        /* The others have returned from this broadcast once they are about to make the next one. */
        if (is_broadcast)
            wait_for_others();
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    MPI_Comm_free(&row);
    MPI_Finalize();
    return 0;
}
