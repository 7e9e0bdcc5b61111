/* What every test program does with a result: go on, or say where and what, and end with code 1. */
#ifndef CHECK_H
#define CHECK_H

#include <sapwood.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longer than any wait of these programs; it passes only when something hangs. */
#define HANG_MS 60000

enum { TAG_ALL = SAPWOOD_FIRST_TAG, TAG_RANK, TAG_END, TAG_TEXTS, TAG_MISUSE, TAG_SILENT, TAG_DOUBLES, TAG_SERIES,
       TAG_ASKED, TAG_UNASKED, TAG_FLOOD, TAG_FLOODED, TAG_CLASSES, TAG_NUMBER_CLASSES };

static inline void fail(const char *file, int line, const char *what, const char *text)
{
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, what, text);
    exit(1);
}

#define CHECK(condition) \
    ((condition) ? (void)0 : fail(__FILE__, __LINE__, "is not so", #condition))
/* The call succeeds. */
#define OK(call) ((call) == 0 ? (void)0 : fail(__FILE__, __LINE__, #call, error.text))

static inline void check_refused(const char *file, int line, const char *call, int code, int wanted,
                                 const sapwood_error_t *error, const char *words)
{
    if (code != wanted || error->code != wanted || !strstr(error->text, words)) {
        fprintf(stderr, "%s gave %s: '%s', not %s: '%s'\n", call, sapwood_error_name(code),
                error->text, sapwood_error_name(wanted), words);
        fail(file, line, call, "is refused otherwise");
    }
}

/* The call is refused with this code, and with these words in its text. */
#define REFUSED(call, wanted, words) \
    check_refused(__FILE__, __LINE__, #call, call, SAPWOOD_ERROR_##wanted, &error, words)

#endif
