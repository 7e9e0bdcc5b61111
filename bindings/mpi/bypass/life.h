/* When the bypass is at work: from the end of MPI_Init to MPI_Finalize, in no forked child. */
#ifndef SAPWOOD_BYPASS_LIFE_H
#define SAPWOOD_BYPASS_LIFE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "visibility.h"

extern SAPWOOD_HIDDEN _Atomic bool bypass_active;

static inline bool bypass_is_active(void)
{
    return atomic_load_explicit(&bypass_active, memory_order_acquire);
}

/* Around the MPI library's own initialisation. */
void bypass_init_begins(void);
void bypass_init_ends(bool succeeded);

/* Before the MPI library's own end. */
void bypass_finalize(void);

#endif
