/*
 * Lines for a reader that looks for a fault. Nothing is written at level 0.
 */
#ifndef XPLAT_LIGHTWEIGHT_XPLAT_UTILS_LIGHTWEIGHT_H
#define XPLAT_LIGHTWEIGHT_XPLAT_UTILS_LIGHTWEIGHT_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef XPLAT_RELEASE_DATE_SECS
#define XPLAT_RELEASE_DATE_SECS 1308200400
#endif

#ifdef __cplusplus
extern "C" {
#endif

extern int CUR_DEBUG_LEVEL;

void set_DebugLevel(int level);
int get_DebugLevel(void);
/* Where lines go from then on, whatever a call says; NULL for where it says. */
void xplat_printf_init(FILE *file);
/* The length of the text without its place. */
int xplat_printf(const char *file, int line, const char *function, FILE *to, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

#ifdef __cplusplus
}
#endif

/* The same names as in C++: the header that comes first says where lines go. */
#ifndef FLF
#define FLF __FILE__, __LINE__, __func__
#endif
#ifndef xplat_dbg
#define xplat_dbg(level, statement)     \
    do {                                \
        if (CUR_DEBUG_LEVEL >= (level)) \
            statement;                  \
    } while (0)
#define xplat_dbg_func_begin() xplat_dbg(3, xplat_printf(FLF, stderr, "begins\n"))
#define xplat_dbg_func_end() xplat_dbg(3, xplat_printf(FLF, stderr, "ends\n"))
#endif

#endif
