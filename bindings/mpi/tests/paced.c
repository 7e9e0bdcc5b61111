/* Works in small steps until the file named by its argument is there, or a minute is over. Makes a
 * file of that name and ".begun" as soon as all ranks have taken a step. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { STEPS_MAX = 6000, STEP_MS = 10 };

static void begin(const char *stop)
{
    char path[4096];
    snprintf(path, sizeof path, "%s.begun", stop);
    FILE *file = fopen(path, "w");
    if (file != NULL)
        fclose(file);
}

int main(int argc, char **argv)
{
    int rank, goes_on = 1;
    double one = 1, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int step = 0; goes_on && step < STEPS_MAX; step++) {
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000}, NULL);
        if (rank == 0 && argc > 1 && step == 1)
            begin(argv[1]);
        if (rank == 0)
            goes_on = argc > 1 && access(argv[1], F_OK) != 0;
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    if (rank == 0)
        puts("the program is done");
    return 0;
}
