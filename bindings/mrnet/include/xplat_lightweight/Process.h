/*
 * This process.
 */
#ifndef XPLAT_LIGHTWEIGHT_PROCESS_H
#define XPLAT_LIGHTWEIGHT_PROCESS_H

#ifdef __cplusplus
extern "C" {
#endif

int Process_GetProcessId(void);

#ifdef __cplusplus
}
#endif

#endif
