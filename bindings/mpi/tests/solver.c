/* A Jacobi and a conjugate-gradient-like loop in one dimension: halo exchange by
 * send-receive and by non-blocking calls, reductions, regions. run.py knows how
 * many calls and bytes this makes. */
#include <mpi.h>
#include <string.h>

#include "sapwood_mpi.h"

enum { JACOBI_STEPS = 50, GRADIENT_STEPS = 20, CELLS = 100, HALO = 10 };

static double field[CELLS + 2 * HALO], next_field[CELLS + 2 * HALO];

static void jacobi(int left, int right)
{
    for (int step = 0; step < JACOBI_STEPS; step++) {
        sapwood_region_begin("halo");
        MPI_Sendrecv(&field[1], 1, MPI_DOUBLE, left, 0, &field[CELLS + 1], 1, MPI_DOUBLE, right, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Sendrecv(&field[CELLS], 1, MPI_DOUBLE, right, 1, &field[0], 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        sapwood_region_end("halo");
        double change = 0, total = 0;
        for (int i = 1; i <= CELLS; i++) {
            next_field[i] = 0.5 * (field[i - 1] + field[i + 1]);
            change += next_field[i] - field[i];
        }
        memcpy(field, next_field, sizeof field);
        MPI_Allreduce(&change, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
}

static void gradient(int left, int right)
{
    for (int step = 0; step < GRADIENT_STEPS; step++) {
        MPI_Request requests[4];
        double dots[2] = {1, 2};
        MPI_Irecv(&field[0], HALO, MPI_DOUBLE, left, 2, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(&field[CELLS + HALO], HALO, MPI_DOUBLE, right, 3, MPI_COMM_WORLD, &requests[1]);
        MPI_Isend(&field[HALO], HALO, MPI_DOUBLE, left, 3, MPI_COMM_WORLD, &requests[2]);
        MPI_Isend(&field[CELLS], HALO, MPI_DOUBLE, right, 2, MPI_COMM_WORLD, &requests[3]);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        MPI_Allreduce(MPI_IN_PLACE, dots, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    int rank, size, settings[5] = {0};
    double sums[3] = {1, 2, 3}, totals[3];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int left = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    int right = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    MPI_Bcast(settings, 5, MPI_INT, 0, MPI_COMM_WORLD);
    sapwood_region_begin("solve");
    jacobi(left, right);
    gradient(left, right);
    sapwood_region_end("solve");
    for (int i = 0; i < 3; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Reduce(sums, totals, 3, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
