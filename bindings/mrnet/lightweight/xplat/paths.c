/*
 * Parts of paths by their names in C.
 */
#include <string.h>

#include "xplat_lightweight/PathUtils.h"

char *GetFilename(const char *path)
{
    size_t end = strlen(path), start;
    while (end > 1 && path[end - 1] == '/')
        end--;
    for (start = end; start > 0 && path[start - 1] != '/';)
        start--;
    return start == end ? strndup(path, end) : strndup(path + start, end - start);
}
