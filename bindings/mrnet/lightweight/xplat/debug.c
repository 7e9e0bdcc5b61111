/*
 * Lines for a reader that looks for a fault, by their names in C.
 */
#include "lines.h"
#include "xplat_lightweight/xplat_utils_lightweight.h"

int CUR_DEBUG_LEVEL = 0;
static FILE *output;

void set_DebugLevel(int level)
{
    CUR_DEBUG_LEVEL = level < 0 ? 0 : level;
}

int get_DebugLevel(void)
{
    return CUR_DEBUG_LEVEL;
}

void xplat_printf_init(FILE *file)
{
    output = file;
}

int xplat_printf(const char *file, int line, const char *function, FILE *to, const char *format, ...)
{
    const struct mrn_place place = {file, line, function, NULL};
    va_list values;
    va_start(values, format);
    int length = mrn_line(output != NULL ? output : to != NULL ? to : stderr, &place, format, values);
    va_end(values);
    return length;
}
