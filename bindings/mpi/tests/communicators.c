/* Communicators of several sizes whose handles are reused, an intercommunicator,
 * and a call that fails. Needs an even number of ranks. */
#include <mpi.h>
#include <stddef.h>

enum { ROUNDS = 10 };

/* Alternates between halves and the whole, so that a handle comes back with
 * another size. */
static void split_and_free(int rank)
{
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm part;
        int one = 1, sum;
        MPI_Comm_split(MPI_COMM_WORLD, round % 2 ? rank % 2 : 0, rank, &part);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, part);
        MPI_Comm_free(&part);
    }
}

/* One bridge between the even and the odd ranks. */
static void across(int rank, int size)
{
    MPI_Comm half, bridge;
    int mine[64] = {0}, theirs[64];
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &bridge);
    MPI_Alltoall(mine, 3, MPI_INT, theirs, 3, MPI_INT, bridge);
    int root = rank == 0 ? MPI_ROOT : rank % 2 == 0 ? MPI_PROC_NULL : 0;
    MPI_Bcast(mine, 4, MPI_INT, root, bridge);
    /* The arguments that do not count at the root's side are not to be looked at. */
    if (rank % 2 == 0)
        MPI_Gather(NULL, -1, MPI_DATATYPE_NULL, theirs, 5, MPI_INT, root, bridge);
    else
        MPI_Gather(mine, 5, MPI_INT, NULL, -1, MPI_DATATYPE_NULL, root, bridge);
    MPI_Comm_disconnect(&bridge);
    MPI_Comm_free(&half);
    (void)size;
}

int main(int argc, char **argv)
{
    int rank, size, one = 1, sum;
    MPI_Comm copy;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    split_and_free(rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, copy);
    MPI_Comm_free(&copy);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
    across(rank, size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int failed = MPI_Send(&one, 1, MPI_INT, size + 5, 0, MPI_COMM_WORLD) != MPI_SUCCESS;
    MPI_Finalize();
    return failed ? 0 : 3;
}
