/*
 * xplat_lightweight/Mutex.h by itself: nothing is lost of what threads add under it.
 */
#include "xplat_lightweight/Mutex.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>

#include "../check.h"

enum { EACH = 20000 };
static Mutex_t *mutex;
static long sum;

static void *add(void *place)
{
    for (int at = 0; at < EACH; at++) {
        Mutex_Lock(mutex);
        sum = sum + 1;
        Mutex_Unlock(mutex);
    }
    return place;
}

static void *try_it(void *result)
{
    *(int *)result = Mutex_Trylock(mutex);
    return NULL;
}

int main(void)
{
    pthread_t one, other;
    int result = -1;
    mutex = Mutex_construct();
    DEMAND(mutex != NULL && pthread_create(&one, NULL, add, NULL) == 0);
    DEMAND(pthread_create(&other, NULL, add, NULL) == 0);
    DEMAND(pthread_join(one, NULL) == 0 && pthread_join(other, NULL) == 0 && sum == 2 * EACH);
    DEMAND(Mutex_Unlock(mutex) == EPERM && Mutex_Trylock(mutex) == 0 && Mutex_Lock(mutex) == 0);
    DEMAND(pthread_create(&one, NULL, try_it, &result) == 0 && pthread_join(one, NULL) == 0);
    DEMAND(result == EBUSY && Mutex_Unlock(mutex) == 0 && Mutex_Unlock(mutex) == 0);
    DEMAND(Mutex_destruct(mutex) == 0);
    return 0;
}
