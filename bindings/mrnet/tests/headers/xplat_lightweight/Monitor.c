/*
 * xplat_lightweight/Monitor.h by itself: two threads hand a turn to each other.
 */
#include "xplat_lightweight/Monitor.h"

#include <errno.h>
#include <pthread.h>

#include "../check.h"

enum { TURNS = 1000, CHANGED = 7, ALL = 8 };
static Monitor_t *monitor;
static int turn;

static int take_turns(int mine)
{
    for (int round = 0; round < TURNS; round++) {
        DEMAND(Monitor_Lock(monitor) == 0);
        while (turn % 2 != mine)
            DEMAND(Monitor_WaitOnCondition(monitor, CHANGED) == 0);
        turn++;
        int signalled = round % 2 ? Monitor_SignalCondition(monitor, CHANGED)
                                  : Monitor_BroadcastCondition(monitor, CHANGED);
        DEMAND(signalled == 0 && Monitor_Unlock(monitor) == 0);
    }
    return 0;
}

static void *other_turns(void *line)
{
    *(int *)line = take_turns(1);
    return NULL;
}

static void *try_it(void *result)
{
    *(int *)result = Monitor_Trylock(monitor);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    int other = -1;
    monitor = Monitor_construct();
    DEMAND(monitor != NULL && Monitor_WaitOnCondition(monitor, CHANGED) == -1);
    DEMAND(Monitor_SignalCondition(monitor, CHANGED) == -1);
    DEMAND(Monitor_BroadcastCondition(monitor, ALL) == -1);
    DEMAND(Monitor_RegisterCondition(monitor, CHANGED) == 0);
    DEMAND(Monitor_RegisterCondition(monitor, ALL) == 0);
    DEMAND(pthread_create(&thread, NULL, other_turns, &other) == 0);
    ALSO(take_turns(0));
    DEMAND(pthread_join(thread, NULL) == 0 && other == 0 && turn == 2 * TURNS);
    DEMAND(Monitor_Trylock(monitor) == 0 && Monitor_Lock(monitor) == 0);
    DEMAND(pthread_create(&thread, NULL, try_it, &other) == 0 && pthread_join(thread, NULL) == 0);
    DEMAND(other == EBUSY && Monitor_Unlock(monitor) == 0);
    DEMAND(Monitor_destruct(monitor) == EBUSY && Monitor_Unlock(monitor) == 0);
    DEMAND(Monitor_Unlock(monitor) == EPERM && Monitor_destruct(monitor) == 0);
    return 0;
}
