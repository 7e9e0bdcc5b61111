/*
 * xplat_lightweight/xplat_utils_lightweight.h by itself: lines, at the levels that are asked for.
 */
#include "xplat_lightweight/xplat_utils_lightweight.h"

#include <string.h>

#include "../check.h"

static int lines_to(FILE *file)
{
    xplat_dbg_func_begin();
    int length = xplat_printf(FLF, file, "number %d\n", 7);
    xplat_printf_init(file);
    xplat_dbg(1, xplat_printf(FLF, stderr, "written\n"));
    xplat_dbg(2, xplat_printf(FLF, stderr, "not written\n"));
    set_DebugLevel(3);
    xplat_dbg_func_end();
    xplat_printf_init(NULL);
    return length;
}

int main(void)
{
    char text[512] = "";
    FILE *file = tmpfile();
    DEMAND(file != NULL && get_DebugLevel() == 0 && CUR_DEBUG_LEVEL == 0);
    set_DebugLevel(1);
    DEMAND(get_DebugLevel() == 1 && XPLAT_RELEASE_DATE_SECS > 0 && lines_to(file) == 9);
    rewind(file);
    DEMAND(fread(text, 1, sizeof text - 1, file) > 0 && fclose(file) == 0);
    DEMAND(strstr(text, "lines_to: number 7\n") != NULL);
    DEMAND(strstr(text, "lines_to: written\n") != NULL && strstr(text, "not written") == NULL);
    DEMAND(strstr(text, "lines_to: ends\n") != NULL && strstr(text, "begins") == NULL);
    return 0;
}
