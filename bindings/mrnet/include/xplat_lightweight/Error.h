/*
 * Numbers of system errors.
 */
#ifndef XPLAT_LIGHTWEIGHT_ERROR_H
#define XPLAT_LIGHTWEIGHT_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

/* The words for a number; the calling thread's until it asks again. */
char *XPlat_Error_GetErrorString(int code);
int XPlat_Error_ETimedOut(int code);
int XPlat_Error_EAddrInUse(int code);
int XPlat_Error_EConnRefused(int code);

#ifdef __cplusplus
}
#endif

#endif
