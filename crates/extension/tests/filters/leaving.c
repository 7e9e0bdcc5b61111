/* A filter whose library ends the process of rank 5 while it is being loaded. */
#include <stdlib.h>
#include <string.h>

#include "sapwood_filter.h"

__attribute__((constructor)) static void leave(void)
{
    const char *rank = getenv("SAPWOOD_RANK");
    if (rank != NULL && strcmp(rank, "5") == 0)
        exit(3);
}

static int32_t first(void *state, const sapwood_filter_wave_t *wave, sapwood_filter_out_t *out)
{
    (void)state;
    return sapwood_filter_emit(out, wave->packets[0].tag, wave->packets[0].values,
                               wave->packets[0].value_count);
}

static const sapwood_filter_t filters[] = {{.name = "first", .transform = first}};

static const sapwood_filter_library_t library = {SAPWOOD_FILTER_VERSION, sizeof(sapwood_filter_t),
                                                 1, filters};

const sapwood_filter_library_t *sapwood_filter_v1(void)
{
    return &library;
}
