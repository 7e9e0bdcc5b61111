/* An MPI that sees no memory that ranks share, so that each is on a host of its own. It is preloaded behind the library
 * that divides the world, which asks by the second name, and before a program that asks by the first one. A rank whose
 * environment names another file in SAPWOOD_TEST_BOOT_FILE reads that file as the boot ID of its host. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

FILE *fopen(const char *path, const char *mode)
{
    FILE *(*next)(const char *, const char *) = (FILE *(*)(const char *, const char *))dlsym(RTLD_NEXT, "fopen");
    const char *other = getenv("SAPWOOD_TEST_BOOT_FILE");
    return next(other != NULL && strcmp(path, "/proc/sys/kernel/random/boot_id") == 0 ? other : path, mode);
}

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *part)
{
    return PMPI_Comm_split_type(comm, type, key, info, part);
}

int PMPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *part)
{
    int rank;
    (void)type, (void)info;
    PMPI_Comm_rank(comm, &rank);
    return PMPI_Comm_split(comm, rank, key, part);
}
