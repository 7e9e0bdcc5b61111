/* What a program links: passes on to the shim when it is preloaded, else nothing.
 *
 * The shared library stands behind a preloaded shim, so the dynamic linker never
 * comes here then. The static one lands in the program, before the shim, and so
 * must look for the shim's functions itself. They are weak, so that a program
 * may also define its own. */
#define _GNU_SOURCE
#include "sapwood_mpi.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

typedef void region_function(const char *);

static void nothing(const char *name)
{
    (void)name;
}

static region_function *found(region_function *_Atomic *known, const char *name)
{
    region_function *next = atomic_load_explicit(known, memory_order_relaxed);
    if (next == NULL) {
        next = (region_function *)dlsym(RTLD_NEXT, name);
        if (next == NULL)
            next = nothing;
        atomic_store_explicit(known, next, memory_order_relaxed);
    }
    return next;
}

__attribute__((weak, visibility("default"))) void sapwood_region_begin(const char *name)
{
    static region_function *_Atomic next;
    found(&next, "sapwood_region_begin")(name);
}

__attribute__((weak, visibility("default"))) void sapwood_region_end(const char *name)
{
    static region_function *_Atomic next;
    found(&next, "sapwood_region_end")(name);
}
