/*
 * Names of hosts. Each place for a name has XPLAT_MAX_HOSTNAME_LEN bytes.
 */
#ifndef XPLAT_LIGHTWEIGHT_NETUTILS_H
#define XPLAT_LIGHTWEIGHT_NETUTILS_H

#include "xplat_lightweight/Types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* 0, or -1 for a host that has no address. The environment says what is looked up: see NetUtils.h
   in C++. */
int XPlat_NetUtils_FindNetworkName(char *host, char *name);
int XPlat_NetUtils_GetHostName(char *host, char *name);
int XPlat_NetUtils_GetLocalHostName(char *name);
int XPlat_NetUtils_GetLastError(void);

#ifdef __cplusplus
}
#endif

#endif
