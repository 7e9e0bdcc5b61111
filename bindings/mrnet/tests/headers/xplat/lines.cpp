/*
 * xplat/xplat_utils.h by itself: lines, at the levels that are asked for.
 */
#include "xplat/xplat_utils.h"

#include <cstring>

#include "../check.h"

static int lines_to(FILE* file)
{
    xplat_dbg_func_begin();
    int length = XPlat::xplat_printf(FLF, file, "number %d\n", 7);
    XPlat::xplat_printf_init(file);
    xplat_dbg(1, XPlat::xplat_printf(FLF, stderr, "written\n"));
    xplat_dbg(2, XPlat::xplat_printf(FLF, stderr, "not written\n"));
    XPlat::set_DebugLevel(3);
    xplat_dbg_func_end();
    XPlat::xplat_printf_init(NULL);
    return length;
}

int main()
{
    char text[512] = "";
    FILE* file = tmpfile();
    DEMAND(file != NULL && XPlat::get_DebugLevel() == 0 && XPlat::CUR_DEBUG_LEVEL == 0);
    XPlat::set_DebugLevel(1);
    DEMAND(XPlat::get_DebugLevel() == 1 && XPLAT_RELEASE_DATE_SECS > 0);
    XPlat::XPlat_TLSKey->InitTLS("teller", NULL);
    DEMAND(lines_to(file) == 9);
    rewind(file);
    DEMAND(fread(text, 1, sizeof text - 1, file) > 0 && fclose(file) == 0);
    DEMAND(strstr(text, "lines_to: number 7\n") != NULL && strstr(text, "teller: ") == text);
    DEMAND(strstr(text, "lines_to: written\n") != NULL && strstr(text, "not written") == NULL);
    DEMAND(strstr(text, "lines_to: ends\n") != NULL && strstr(text, "begins") == NULL);
    return 0;
}
