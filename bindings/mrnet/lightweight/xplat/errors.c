/*
 * System errors by their names in C.
 */
#include <errno.h>
#include <string.h>

#include "xplat_lightweight/Error.h"

char *XPlat_Error_GetErrorString(int code)
{
    static _Thread_local char place[128];
    return strerror_r(code, place, sizeof place);
}

int XPlat_Error_ETimedOut(int code)
{
    return code == ETIMEDOUT;
}

int XPlat_Error_EAddrInUse(int code)
{
    return code == EADDRINUSE;
}

int XPlat_Error_EConnRefused(int code)
{
    return code == ECONNREFUSED;
}
