/* Communicators that are made and freed by their PMPI_ names, so that MPI gives their handles to others:
 *
 *     unseen COUNT
 *
 * Prints how many of the handles had been another communicator's before. Rank 0 has one more of its own for a part
 * of every third round, so that handles do not follow each other alike in all ranks. In each round another number of
 * collectives is made on the communicators, and the program is right. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KNOWN_MAX = 4096 };

static MPI_Comm known[KNOWN_MAX];
static int known_count, again;

static void note(MPI_Comm comm)
{
    for (int i = 0; i < known_count; i++)
        if (memcmp(&known[i], &comm, sizeof comm) == 0) {
            again++;
            return;
        }
    if (known_count < KNOWN_MAX)
        known[known_count++] = comm;
}

static void use(MPI_Comm comm, int count)
{
    int word = 1, sum = 0;
    for (int i = 0; i < count; i++) {
        if (i % 2 == 0)
            MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, comm);
        else
            MPI_Bcast(&word, 1, MPI_INT, 0, comm);
    }
}

int main(int argc, char **argv)
{
    int rank, count = argc > 1 ? atoi(argv[1]) : 100;
    MPI_Comm own = MPI_COMM_NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < count; i++) {
        MPI_Comm copy, split;
        if (rank == 0 && i % 3 == 1)
            PMPI_Comm_dup(MPI_COMM_SELF, &own);
        PMPI_Comm_dup(MPI_COMM_WORLD, &copy);
        note(copy);
        use(copy, 1 + i % 5);
        if (own != MPI_COMM_NULL)
            PMPI_Comm_free(&own);
        /* Its handle may be that of a former one, by the name that is seen. */
        MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &split);
        note(split);
        use(split, 1 + i % 3);
        PMPI_Comm_free(&copy);
        PMPI_Comm_free(&split);
    }
    if (rank == 0)
        printf("%d handles again\n", again);
    MPI_Finalize();
    return 0;
}
