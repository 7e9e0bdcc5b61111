/*
 * xplat_lightweight/PathUtils.h by itself.
 */
#include "xplat_lightweight/PathUtils.h"

#include <stdlib.h>
#include <string.h>

#include "../check.h"

int main(void)
{
    static const char *const rows[][2] = {{"/usr/lib/libm.so", "libm.so"}, {"/usr/", "usr"},
                                          {"file", "file"}, {"/", "/"}, {"", ""}, {"a/b//", "b"}};
    for (size_t at = 0; at < sizeof rows / sizeof rows[0]; at++) {
        char *name = GetFilename(rows[at][0]);
        DEMAND(name != NULL && strcmp(name, rows[at][1]) == 0);
        free(name);
    }
    return 0;
}
