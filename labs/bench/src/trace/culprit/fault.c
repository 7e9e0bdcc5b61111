/* Puts one fault into one rank of an unmodified program, in front of its MPI library and of a shim.
 *
 *     LD_PRELOAD=fault.so:$LD_PRELOAD with FAULT_KIND, FAULT_RANK, FAULT_CALL and FAULT_FOLDER
 *
 * The fault comes in the FAULT_CALL-th MPI_Allreduce of rank FAULT_RANK of Open MPI, and the time of CLOCK_MONOTONIC
 * is written to FAULT_FOLDER/fault just before. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { SLOW_NS = 60000000, LINK_BYTES_PER_S = 500000, DESCRIPTORS = 1024, TAG_OF_NO_MESSAGE = 99 };
/* After this time all others wait for a rank in a reduction. */
enum { OTHERS_COME_NS = 200000000 };

static const char *setting(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "";
}

static long long now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void note(void)
{
    char unfinished[4096], file[4096];
    snprintf(unfinished, sizeof unfinished, "%s/fault.new", setting("FAULT_FOLDER"));
    snprintf(file, sizeof file, "%s/fault", setting("FAULT_FOLDER"));
    FILE *stream = fopen(unfinished, "w");
    if (stream) {
        fprintf(stream, "%lld", now(CLOCK_MONOTONIC));
        fclose(stream);
        rename(unfinished, file);
    }
}

/* Has all that this process sends over TCP leave slowly, as over a bad link. */
static void pace_sockets(void)
{
    unsigned rate = LINK_BYTES_PER_S;
    for (int one = 3; one < DESCRIPTORS; one++) {
        struct sockaddr_storage peer;
        socklen_t size = sizeof peer;
        if (getpeername(one, (struct sockaddr *)&peer, &size) == 0 && peer.ss_family != AF_UNIX)
            setsockopt(one, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate);
    }
}

static void poll(MPI_Comm comm, int call)
{
    int is_there = 0, nothing;
    MPI_Request request;
    if (call % 2)
        MPI_Irecv(&nothing, 1, MPI_INT, MPI_ANY_SOURCE, TAG_OF_NO_MESSAGE, comm, &request);
    while (!is_there) {
        if (call % 2)
            MPI_Test(&request, &is_there, MPI_STATUS_IGNORE);
        else
            MPI_Iprobe(MPI_ANY_SOURCE, TAG_OF_NO_MESSAGE, comm, &is_there, MPI_STATUS_IGNORE);
    }
}

typedef int Allreduce(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);

/* Gives one element more than the others, out of memory of its own, once all others wait for it. */
static int give_more(Allreduce *next, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    MPI_Aint lowest, extent;
    MPI_Type_get_extent(type, &lowest, &extent);
    size_t elements = (size_t)count + 1;
    void *own = calloc(elements, (size_t)extent), *all = calloc(elements, (size_t)extent);
    if (!own || !all)
        abort();
    nanosleep(&(struct timespec){.tv_nsec = OTHERS_COME_NS}, NULL);
    int code = next(own, all, count + 1, type, op, comm);
    free(own);
    free(all);
    return code;
}

int MPI_Allreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    static int calls, at, is_mine = -1;
    static Allreduce *next;
    const char *kind = setting("FAULT_KIND");
    if (is_mine < 0) {
        is_mine = strcmp(setting("OMPI_COMM_WORLD_RANK"), setting("FAULT_RANK")) == 0;
        at = atoi(setting("FAULT_CALL"));
        next = (Allreduce *)dlsym(RTLD_NEXT, "MPI_Allreduce");
    }
    if (is_mine && ++calls == at) {
        note();
        if (strcmp(kind, "slow_link") == 0)
            pace_sockets();
        if (strcmp(kind, "other_operation") == 0)
            return MPI_Barrier(comm);
        if (strcmp(kind, "other_count") == 0)
            return give_more(next, count, type, op, comm);
        if (strcmp(kind, "polling_loop") == 0)
            poll(comm, calls);
        for (volatile int turn = 0; strcmp(kind, "endless_loop") == 0;)
            turn++;
    }
    if (is_mine && calls >= at && strcmp(kind, "slow_compute") == 0)
        for (long long until = now(CLOCK_THREAD_CPUTIME_ID) + SLOW_NS; now(CLOCK_THREAD_CPUTIME_ID) < until;)
            ;
    return next(from, to, count, type, op, comm);
}
