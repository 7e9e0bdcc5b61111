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
#include <string.h>

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

/* The shim's function, or NULL when there is none. */
static void *found_or_null(void *_Atomic *known, const char *name)
{
    static char none;
    void *next = atomic_load_explicit(known, memory_order_relaxed);
    if (next == NULL) {
        next = dlsym(RTLD_NEXT, name);
        next = next == NULL ? &none : next;
        atomic_store_explicit(known, next, memory_order_relaxed);
    }
    return next == &none ? NULL : next;
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

__attribute__((weak, visibility("default"))) void sapwood_round(void)
{
    typedef void function(void);
    static void *_Atomic next;
    function *known = (function *)found_or_null(&next, "sapwood_round");
    if (known != NULL)
        known();
}

/* The names under which Fortran's compilers call them where no interface is given: a text without an
 * end, and behind all arguments its length. */
static const char *of_fortran(char *text, const char *name, size_t length)
{
    while (length > 0 && name[length - 1] == ' ')
        length--;
    /* Longer names are dropped and counted as such: one letter too many is enough. */
    if (length > SAPWOOD_REGION_NAME_BYTES_MAX + 1)
        length = SAPWOOD_REGION_NAME_BYTES_MAX + 1;
    memcpy(text, name, length);
    text[length] = '\0';
    return text;
}

__attribute__((weak, visibility("default"))) void sapwood_region_begin_(const char *name, size_t length)
{
    char text[SAPWOOD_REGION_NAME_BYTES_MAX + 2];
    sapwood_region_begin(of_fortran(text, name, length));
}

__attribute__((weak, visibility("default"))) void sapwood_region_end_(const char *name, size_t length)
{
    char text[SAPWOOD_REGION_NAME_BYTES_MAX + 2];
    sapwood_region_end(of_fortran(text, name, length));
}

__attribute__((weak, visibility("default"))) void sapwood_round_(void)
{
    sapwood_round();
}

__attribute__((weak, visibility("default"))) int sapwood_advice(struct sapwood_advice *advice)
{
    typedef int function(struct sapwood_advice *);
    static void *_Atomic next;
    function *known = (function *)found_or_null(&next, "sapwood_advice");
    if (known != NULL)
        return known(advice);
    if (advice != NULL)
        memset(advice, 0, sizeof *advice);
    return 0;
}

__attribute__((weak, visibility("default"))) int sapwood_advice_event(const char *name,
                                                                      struct sapwood_event_advice *advice)
{
    typedef int function(const char *, struct sapwood_event_advice *);
    static void *_Atomic next;
    function *known = (function *)found_or_null(&next, "sapwood_advice_event");
    if (known != NULL)
        return known(name, advice);
    if (advice != NULL)
        memset(advice, 0, sizeof *advice);
    return 0;
}
