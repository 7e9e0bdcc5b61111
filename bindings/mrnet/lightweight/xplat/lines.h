/*
 * A line for a reader that looks for a fault, in both languages.
 */
#ifndef MRN_XPLAT_LINES_H
#define MRN_XPLAT_LINES_H

#include <stdarg.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mrn_place {
    const char *file;
    int line;
    const char *function;
    /* The thread's name, or NULL. */
    const char *thread;
};

/* The length of the text alone. */
int mrn_line(FILE *to, const struct mrn_place *place, const char *format, va_list values);

#ifdef __cplusplus
}
#endif

#endif
