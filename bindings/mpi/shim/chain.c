/* See chain.h. */
#define _GNU_SOURCE
#include "chain.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "library.h"
#include "say.h"

void *sapwood_chained(const char *name, const char *twin)
{
    void *next = dlsym(RTLD_NEXT, name);
    return next != NULL ? next : sapwood_next(twin);
}

/* The path of the library that takes this function before the shim; NULL if none does. The
 * program itself is none: an address there may only stand for the shim's. */
static const char *taker(const char *name)
{
    Dl_info first, own;
    struct link_map *map = NULL;
    const void *symbol = dlsym(RTLD_DEFAULT, name);
    if (symbol == NULL || dladdr1(symbol, &first, (void **)&map, RTLD_DL_LINKMAP) == 0 ||
        dladdr(&sapwood_library, &own) == 0)
        return NULL;
    bool is_program = map != NULL && *map->l_name == '\0';
    return first.dli_fbase == own.dli_fbase || is_program ? NULL : first.dli_fname;
}

uint32_t sapwood_taken_functions(const char **library)
{
    uint32_t taken = 0;
    *library = NULL;
    for (const char *const *name = sapwood_wrapped; *name != NULL; name++) {
        const char *by = taker(*name);
        taken += by != NULL;
        if (*library == NULL)
            *library = by;
    }
    return taken;
}

/* Whether this process speaks for the others, as far as launchers tell. */
static int is_first_rank(void)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *rank = getenv(variables[i]);
        if (rank != NULL)
            return strcmp(rank, "0") == 0;
    }
    return 1;
}

void sapwood_say_unseen(void)
{
    if (getenv("SAPWOOD_MPI_LEAVES") == NULL || !is_first_rank())
        return;
    /* Open MPI's mpirun exits within a signal handler that may have interrupted malloc, and a
     * look-up that fails allocates the text of its error: mpirun would never end. */
    if (!sapwood_is_mpi_loaded())
        return;
    int (*ask)(int *) = (int (*)(int *))sapwood_symbol("PMPI_Initialized");
    int initialised = 0;
    const char *library;
    if (ask == NULL || ask(&initialised) != MPI_SUCCESS || !initialised)
        return;
    uint32_t taken = sapwood_taken_functions(&library);
    if (taken > 0)
        sapwood_say("no MPI call was seen: %s takes %u MPI functions before the shim; preload it behind the shim",
                    library, taken);
    else
        sapwood_say("no MPI call was seen: the program calls none of MPI's public names");
}
