/* See say.h. */
#include "say.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

enum { LINE_BYTES_MAX = 512 };

void sapwood_say(const char *format, ...)
{
    char line[LINE_BYTES_MAX];
    int used = snprintf(line, sizeof line, "sapwood: ");
    va_list arguments;
    va_start(arguments, format);
    int more = vsnprintf(line + used, sizeof line - (size_t)used - 1, format, arguments);
    va_end(arguments);
    used += more < 0 ? 0 : more;
    if (used > LINE_BYTES_MAX - 2)
        used = LINE_BYTES_MAX - 2;
    line[used++] = '\n';
    /* There is no other place to report to when standard error does not take it. */
    ssize_t ignored = write(STDERR_FILENO, line, (size_t)used);
    (void)ignored;
}
