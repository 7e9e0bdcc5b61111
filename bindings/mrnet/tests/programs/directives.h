/*
 * Every directive, for both languages: what is sent under it, and whether that has come.
 *
 * Before this is included: STREAM and PACKET are types, SEND(stream, tag, ...) gives 0 for success as
 * UNPACK(packet, ...) does.
 */
#ifndef DIRECTIVES_H
#define DIRECTIVES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_DIRECTIVE = 200, DIRECTIVES = 33, ELEMENTS = 3 };

#define EVERY_SCALAR(X)                                     \
    X(0, "c", char, -7, 0, 127)                             \
    X(1, "uc", unsigned char, 250, 0, 255)                  \
    X(2, "hd", int16_t, -30000, 1, 32767)                   \
    X(3, "uhd", uint16_t, 60000, 2, 65535)                  \
    X(4, "d", int32_t, -2000000000, 3, 2147483647)          \
    X(5, "ud", uint32_t, 4000000000u, 4, UINT32_MAX)        \
    X(6, "ld", int64_t, INT64_MIN + 1, 5, INT64_MAX)        \
    X(7, "uld", uint64_t, UINT64_MAX - 1, 6, UINT64_MAX)    \
    X(8, "f", float, 1.5f, -0.25f, 3.0e38f)                 \
    X(9, "lf", double, -2.25e300, 0.5, 1.0e-300)

#define DIRECTIVE_TEXT "sap \"wood\" \xc3\xa9"
static const char *const DIRECTIVE_TEXTS[ELEMENTS] = {DIRECTIVE_TEXT, "", "leaf"};

/* Sends one directive, by its number: scalars, then arrays, then large arrays. */
static inline int send_directive(STREAM stream, int number)
{
    const uint32_t count = ELEMENTS;
    const uint64_t large_count = ELEMENTS;
    int tag = TAG_DIRECTIVE + number;
    switch (number) {
#define CASE(at, name, type, one, two, three)                                    \
    case at: return SEND(stream, tag, "%" name, (type)(one));                    \
    case 11 + at: {                                                              \
        static const type values[ELEMENTS] = {one, two, three};                  \
        return SEND(stream, tag, "%a" name, values, count);                      \
    }                                                                            \
    case 22 + at: {                                                              \
        static const type values[ELEMENTS] = {one, two, three};                  \
        return SEND(stream, tag, "%A" name, values, large_count);                \
    }
        EVERY_SCALAR(CASE)
#undef CASE
    case 10: return SEND(stream, tag, "%s", DIRECTIVE_TEXT);
    case 21: return SEND(stream, tag, "%as", DIRECTIVE_TEXTS, count);
    default: return SEND(stream, tag, "%As", DIRECTIVE_TEXTS, large_count);
    }
}

static inline int are_texts(char **texts, uint64_t count)
{
    int is_good = count == ELEMENTS;
    for (uint64_t at = 0; at < count; at++) {
        is_good = is_good && strcmp(texts[at], DIRECTIVE_TEXTS[at]) == 0;
        free(texts[at]);
    }
    free(texts);
    return is_good;
}

/* Whether a packet holds what send_directive sends. */
static inline int check_directive(PACKET packet, int number)
{
    uint32_t count = 0;
    uint64_t large_count = 0;
    char *text = NULL, **texts = NULL;
    int is_good;
    switch (number) {
#define CASE(at, name, type, one, two, three)                                            \
    case at: {                                                                           \
        type value;                                                                      \
        return UNPACK(packet, "%" name, &value) == 0 && value == (type)(one);            \
    }                                                                                    \
    case 11 + at: {                                                                      \
        type *values = NULL, wanted[ELEMENTS] = {one, two, three};                       \
        if (UNPACK(packet, "%a" name, &values, &count) != 0)                             \
            return 0;                                                                    \
        is_good = count == ELEMENTS && memcmp(values, wanted, sizeof wanted) == 0;       \
        free(values);                                                                    \
        return is_good;                                                                  \
    }                                                                                    \
    case 22 + at: {                                                                      \
        type *values = NULL, wanted[ELEMENTS] = {one, two, three};                       \
        if (UNPACK(packet, "%A" name, &values, &large_count) != 0)                       \
            return 0;                                                                    \
        is_good = large_count == ELEMENTS && memcmp(values, wanted, sizeof wanted) == 0; \
        free(values);                                                                    \
        return is_good;                                                                  \
    }
        EVERY_SCALAR(CASE)
#undef CASE
    case 10:
        if (UNPACK(packet, "%s", &text) != 0)
            return 0;
        is_good = strcmp(text, DIRECTIVE_TEXT) == 0;
        free(text);
        return is_good;
    case 21: return UNPACK(packet, "%as", &texts, &count) == 0 && are_texts(texts, count);
    default:
        return UNPACK(packet, "%As", &texts, &large_count) == 0 && are_texts(texts, large_count);
    }
}

#endif
