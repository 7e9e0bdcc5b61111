/*
 * Writes lines whole: threads do not break each other's.
 */
#include "lines.h"

int mrn_line(FILE *to, const struct mrn_place *place, const char *format, va_list values)
{
    flockfile(to);
    if (place->thread != NULL)
        fprintf(to, "%s: ", place->thread);
    if (place->file != NULL)
        fprintf(to, "%s:%d: %s: ", place->file, place->line,
                place->function == NULL ? "" : place->function);
    int length = vfprintf(to, format, values);
    fflush(to);
    funlockfile(to);
    return length;
}
