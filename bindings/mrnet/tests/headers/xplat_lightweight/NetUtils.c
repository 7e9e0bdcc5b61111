/*
 * xplat_lightweight/NetUtils.h by itself.
 */
#include "xplat_lightweight/NetUtils.h"

#include "../check.h"

int main(void)
{
    char name[XPLAT_MAX_HOSTNAME_LEN], local[] = "localhost", number[] = "127.0.0.1";
    char nowhere[] = "no..where", far[] = "far.away";
    DEMAND(XPlat_NetUtils_GetLocalHostName(name) == 0 && name[0] != '\0');
    DEMAND(XPlat_NetUtils_GetHostName(local, name) == 0 && strcmp(name, local) == 0);
    DEMAND(XPlat_NetUtils_FindNetworkName(number, name) == 0 && name[0] != '\0');
    DEMAND(XPlat_NetUtils_FindNetworkName(nowhere, name) == -1);
    DEMAND(XPlat_NetUtils_GetLastError() != 0 && XPlat_NetUtils_GetHostName(nowhere, name) == -1);
    setenv("XPLAT_RESOLVE_HOSTS", "0", 1);
    DEMAND(XPlat_NetUtils_GetHostName(far, name) == 0 && strcmp(name, "far") == 0);
    DEMAND(XPlat_NetUtils_FindNetworkName(far, name) == 0 && strcmp(name, far) == 0);
    return 0;
}
