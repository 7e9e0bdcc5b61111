/*
 * xplat/Thread.h by itself.
 */
#include "xplat/Thread.h"

#include <cerrno>
#include <cstddef>
#include <pthread.h>
#include <unistd.h>

#include "../check.h"

using XPlat::Thread;

static void* say_who(void* place)
{
    *static_cast<Thread::Id*>(place) = Thread::GetId();
    return place;
}

static void* leave_early(void* place)
{
    Thread::Exit(place);
    return NULL;
}

static void* wait_for_ever(void*)
{
    for (;;)
        pause();
}

int main()
{
    Thread::Id id = 0, own = 0;
    void* result = NULL;
    Thread::Func function = say_who;
    DEMAND(Thread::Create(function, &own, &id) == 0 && Thread::Join(id, &result) == 0);
    DEMAND(own == id && id != Thread::GetId() && result == &own);
    DEMAND(Thread::Create(leave_early, &id, &own) == 0 && Thread::Join(own, &result) == 0);
    DEMAND(result == &id);
    DEMAND(Thread::Create(wait_for_ever, NULL, &id) == 0 && Thread::Cancel(id) == 0);
    DEMAND(Thread::Join(id, &result) == 0 && result == PTHREAD_CANCELED);
    DEMAND(Thread::Join(Thread::GetId(), NULL) == EDEADLK);
    return 0;
}
