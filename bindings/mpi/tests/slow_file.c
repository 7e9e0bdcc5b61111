/* Ranks that write to the file of the second argument, in the way that the first one names:
 *
 *   alone      rank 1 writes, and the others wait for it in a barrier
 *   together   all write in one collective call
 *   missed     rank 1 makes other calls without an end, and the others wait for it in a collective call
 *
 * The file is on storage that takes WRITE_SECONDS for what is given to one call: the MPI library writes by the
 * program's own pwrite, which moves the bytes piece by piece. Link with -rdynamic, for libraries that are opened later.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 1 << 20, WRITE_SECONDS = 8, PIECES_A_SECOND = 10, SECONDS_MAX = 100 };

static int is_slow;
static char bytes[BYTES];

static ssize_t slow_write(int file, const char *from, size_t count, off_t at)
{
    size_t done = 0, piece = count / (WRITE_SECONDS * PIECES_A_SECOND) + 1;
    while (done < count) {
        size_t next = count - done < piece ? count - done : piece;
        ssize_t written = syscall(SYS_pwrite64, file, from + done, next, at + (off_t)done);
        if (written <= 0)
            return done > 0 ? (ssize_t)done : written;
        done += (size_t)written;
        nanosleep(&(struct timespec){.tv_nsec = 1000000000 / PIECES_A_SECOND}, NULL);
    }
    return (ssize_t)done;
}

ssize_t pwrite(int file, const void *from, size_t count, off_t at)
{
    return is_slow ? slow_write(file, from, count, at) : syscall(SYS_pwrite64, file, from, count, at);
}

ssize_t pwrite64(int file, const void *from, size_t count, off64_t at)
{
    return is_slow ? slow_write(file, from, count, at) : syscall(SYS_pwrite64, file, from, count, at);
}

static void make_other_calls(void)
{
    for (;;) {
        MPI_Barrier(MPI_COMM_SELF);
        usleep(1000);
    }
}

int main(int argc, char **argv)
{
    int rank;
    MPI_File file;
    if (argc != 3)
        return 2;
    alarm(SECONDS_MAX);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_File_open(MPI_COMM_WORLD, argv[2], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    is_slow = 1;
    if (rank == 1 && strcmp(argv[1], "missed") == 0)
        make_other_calls();
    if (strcmp(argv[1], "alone") != 0)
        MPI_File_write_at_all(file, (MPI_Offset)rank * BYTES, bytes, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    else if (rank == 1)
        MPI_File_write(file, bytes, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    is_slow = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
