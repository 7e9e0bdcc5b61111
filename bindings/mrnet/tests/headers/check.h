/*
 * A program's result is the line of what is not so, or 0. Includes nothing: what a header brings in by
 * itself is under test.
 */
#ifndef CHECK_H
#define CHECK_H

#define DEMAND(condition)    \
    do {                     \
        if (!(condition))    \
            return __LINE__; \
    } while (0)

#define ALSO(function)           \
    do {                         \
        int line = (function);   \
        if (line != 0)           \
            return line;         \
    } while (0)

#endif
