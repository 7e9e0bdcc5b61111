/*
 * Mutexes and monitors by their names in C.
 */
#include <stdlib.h>

#include "locks.h"
#include "xplat_lightweight/Monitor.h"
#include "xplat_lightweight/Mutex.h"

Mutex_t *Mutex_construct(void)
{
    Mutex_t *mutex = malloc(sizeof *mutex);
    struct mrn_lock *lock = mutex == NULL ? NULL : mrn_lock_new();
    if (lock == NULL) {
        free(mutex);
        return NULL;
    }
    mutex->data = lock;
    return mutex;
}

int Mutex_destruct(Mutex_t *mutex)
{
    int error = mrn_lock_free(mutex->data);
    if (error == 0)
        free(mutex);
    return error;
}

int Mutex_Lock(Mutex_t *mutex)
{
    return mrn_lock_take(mutex->data);
}

int Mutex_Unlock(Mutex_t *mutex)
{
    return mrn_lock_leave(mutex->data);
}

int Mutex_Trylock(Mutex_t *mutex)
{
    return mrn_lock_try(mutex->data);
}

Monitor_t *Monitor_construct(void)
{
    Monitor_t *monitor = malloc(sizeof *monitor);
    struct mrn_lock *lock = monitor == NULL ? NULL : mrn_lock_new();
    if (lock == NULL) {
        free(monitor);
        return NULL;
    }
    monitor->data = lock;
    return monitor;
}

int Monitor_destruct(Monitor_t *monitor)
{
    int error = mrn_lock_free(monitor->data);
    if (error == 0)
        free(monitor);
    return error;
}

int Monitor_Lock(Monitor_t *monitor)
{
    return mrn_lock_take(monitor->data);
}

int Monitor_Unlock(Monitor_t *monitor)
{
    return mrn_lock_leave(monitor->data);
}

int Monitor_Trylock(Monitor_t *monitor)
{
    return mrn_lock_try(monitor->data);
}

int Monitor_RegisterCondition(Monitor_t *monitor, int condition)
{
    return mrn_lock_register(monitor->data, (unsigned int)condition);
}

int Monitor_WaitOnCondition(Monitor_t *monitor, int condition)
{
    return mrn_lock_wait(monitor->data, (unsigned int)condition, MRN_NO_LIMIT);
}

int Monitor_SignalCondition(Monitor_t *monitor, int condition)
{
    return mrn_lock_wake(monitor->data, (unsigned int)condition, 0);
}

int Monitor_BroadcastCondition(Monitor_t *monitor, int condition)
{
    return mrn_lock_wake(monitor->data, (unsigned int)condition, 1);
}
