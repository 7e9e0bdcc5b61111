/* Functions of the MPI library behind these wrappers; see world.h. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>

#include "library.h"
#include "say.h"
#include "world.h"

static int absent_function(void)
{
    sapwood_say("the program called an MPI function that its MPI library does not have");
    return MPI_ERR_OTHER;
}

void *sapwood_world_next(const char *name)
{
    /* Behind this library in the order of loading; or in one that Python loaded for
     * itself, where nothing is in the way. */
    void *next = dlsym(RTLD_NEXT, name);
    if (next == NULL)
        next = sapwood_symbol_in_loaded_libraries(name);
    return next != NULL ? next : (void *)(uintptr_t)absent_function;
}
