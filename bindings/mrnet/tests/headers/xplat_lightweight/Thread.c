/*
 * xplat_lightweight/Thread.h by itself.
 */
#include "xplat_lightweight/Thread.h"

#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

#include "../check.h"

static void *say_who(void *place)
{
    *(Thread_Id *)place = Thread_GetId();
    Thread_Exit(place);
    return NULL;
}

static void *wait_for_ever(void *place)
{
    for (;;)
        pause();
    return place;
}

int main(void)
{
    Thread_Id id = 0, own = 0;
    Thread_Func function = say_who;
    void *result = NULL;
    DEMAND(Thread_Create(function, &own, &id) == 0 && Thread_Join(id, &result) == 0);
    DEMAND(own == id && id != Thread_GetId() && result == &own);
    DEMAND(Thread_Create(wait_for_ever, NULL, &id) == 0 && Thread_Cancel(id) == 0);
    DEMAND(Thread_Join(id, &result) == 0 && result == PTHREAD_CANCELED);
    return 0;
}
