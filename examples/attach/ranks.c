/*
 * An MPI program whose ranks are asked from outside while they compute. `mpiexec` starts it, with the join
 * file of a front-end in SAPWOOD_JOIN: `attach` in examples/rust is one. Each rank adds its own number
 * to what it is asked; the program ends when the front-end does.
 */
#include <mpi.h>
#include <sapwood.h>

#include <stdio.h>
#include <time.h>

enum { ADD = SAPWOOD_FIRST_TAG };

/* What is computed: nothing that matters, but all ranks take part in it. */
static void step(double *state)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    double sum;
    MPI_Allreduce(state, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    *state = sum / (sum + 1);
    nanosleep(&pause, NULL);
}

/* Answers what has been asked since the last step. */
static int answer(sapwood_back_end_t *back_end, int rank, sapwood_error_t *error)
{
    sapwood_packet_t *request = NULL;
    int64_t number;
    int code;

    while ((code = sapwood_back_end_try_recv(back_end, &request, error)) == 0 && request != NULL) {
        if ((code = sapwood_packet_read(request, error, "%ld", &number)) == 0)
            code = sapwood_back_end_send(back_end, sapwood_packet_stream(request), ADD, error, "%ld",
                                         number + rank);
        sapwood_packet_free(&request);
        if (code != 0)
            break;
    }
    return code != 0 ? code : sapwood_back_end_flush(back_end, error);
}

int main(int argc, char **argv)
{
    sapwood_back_end_t *back_end = NULL;
    sapwood_error_t error;
    int rank, code, has_ended = 0;
    double state = 1;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    /* The manager's number of this process is its rank in the tree as well. */
    code = sapwood_back_end_attach(&back_end, &error);
    if (code == 0 && sapwood_back_end_rank(back_end) != (uint32_t)rank)
        MPI_Abort(MPI_COMM_WORLD, 2);
    while (!has_ended) {
        step(&state);
        if (code == 0)
            code = answer(back_end, rank, &error);
        /* All ranks end in the same step. */
        int own = code != 0;
        MPI_Allreduce(&own, &has_ended, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    }
    if (code != 0 && code != SAPWOOD_ERROR_ENDED)
        fprintf(stderr, "rank %d: %s\n", rank, error.text);
    sapwood_back_end_close(&back_end, NULL);
    MPI_Finalize();
    return code != 0 && code != SAPWOOD_ERROR_ENDED;
}
