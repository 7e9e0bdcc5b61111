/* Calls of which the shim makes no system call, no allocation and no locking: what the process makes of these
 * meanwhile.
 *
 *     quiet CALLS [made]
 *
 * Prints how often memory was asked for and a mutex was locked while it made that many calls of each kind; with
 * `made` each is on a communicator of its own, which is no quiet call. The same calls are made once before, so that
 * all is in place. Two system calls that nothing else makes, getppid, stand around them for a tracer. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of the thread that calls alone: threads of the MPI library ask and lock when they like. */
static _Thread_local unsigned long asked, locked;

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);

void *malloc(size_t bytes)
{
    asked++;
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    asked++;
    return __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
    asked++;
    return __libc_realloc(memory, bytes);
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    static int (*_Atomic next)(pthread_mutex_t *);
    int (*lock)(pthread_mutex_t *) = next;
    if (lock == NULL)
        next = lock = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock");
    locked++;
    return lock(mutex);
}

static void call(MPI_Comm comm)
{
    int rank, one = 1, sum, got;
    MPI_Request request;
    MPI_Comm_rank(comm, &rank);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Irecv(&got, 1, MPI_INT, 0, 1, comm, &request);
    MPI_Send(&one, 1, MPI_INT, 0, 1, comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Isend(&one, 1, MPI_INT, 0, 2, comm, &request);
    MPI_Recv(&got, 1, MPI_INT, 0, 2, comm, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int calls = argc > 1 ? atoi(argv[1]) : 10000;
    MPI_Comm copy;
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_SELF, &copy);
    call(copy);
    unsigned long asked_before = asked, locked_before = locked;
    syscall(SYS_getppid);
    for (int i = 0; i < calls; i++) {
        MPI_Comm other = copy;
        if (argc > 2)
            MPI_Comm_dup(copy, &other);
        call(other);
        if (argc > 2)
            MPI_Comm_free(&other);
    }
    syscall(SYS_getppid);
    printf("%lu %lu\n", asked - asked_before, locked - locked_before);
    MPI_Comm_free(&copy);
    MPI_Finalize();
    return 0;
}
