/*
 * A lock with numbered conditions that threads wait for.
 */
#ifndef XPLAT_LIGHTWEIGHT_MONITOR_H
#define XPLAT_LIGHTWEIGHT_MONITOR_H

#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Monitor_t {
    void *data;
} Monitor_t;

/* NULL if there is no memory. */
Monitor_t *Monitor_construct(void);
/* Each gives 0, or the number of a system error; -1 for a condition that is not registered. */
int Monitor_destruct(Monitor_t *monitor);
int Monitor_Lock(Monitor_t *monitor);
int Monitor_Unlock(Monitor_t *monitor);
int Monitor_Trylock(Monitor_t *monitor);
int Monitor_RegisterCondition(Monitor_t *monitor, int condition);
int Monitor_WaitOnCondition(Monitor_t *monitor, int condition);
int Monitor_SignalCondition(Monitor_t *monitor, int condition);
int Monitor_BroadcastCondition(Monitor_t *monitor, int condition);

#ifdef __cplusplus
}
#endif

#endif
