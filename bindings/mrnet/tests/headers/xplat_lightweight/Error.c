/*
 * xplat_lightweight/Error.h by itself.
 */
#include "xplat_lightweight/Error.h"

#include <errno.h>
#include <string.h>

#include "../check.h"

int main(void)
{
    DEMAND(strstr(XPlat_Error_GetErrorString(ENOENT), "No such file") != NULL);
    DEMAND(XPlat_Error_ETimedOut(ETIMEDOUT) && !XPlat_Error_ETimedOut(0));
    DEMAND(XPlat_Error_EAddrInUse(EADDRINUSE) && !XPlat_Error_EAddrInUse(0));
    DEMAND(XPlat_Error_EConnRefused(ECONNREFUSED) && !XPlat_Error_EConnRefused(0));
    return 0;
}
