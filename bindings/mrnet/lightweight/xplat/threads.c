/*
 * Threads, and the process, by their names in C.
 */
#include <pthread.h>
#include <unistd.h>

#include "xplat_lightweight/Process.h"
#include "xplat_lightweight/Thread.h"

int Thread_Create(Thread_Func function, void *data, Thread_Id *id)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, function, data);
    if (error == 0 && id != NULL)
        *id = (Thread_Id)thread;
    return error;
}

Thread_Id Thread_GetId(void)
{
    return (Thread_Id)pthread_self();
}

int Thread_Join(Thread_Id id, void **result)
{
    return pthread_join((pthread_t)id, result);
}

int Thread_Cancel(Thread_Id id)
{
    return pthread_cancel((pthread_t)id);
}

void Thread_Exit(void *result)
{
    pthread_exit(result);
}

int Process_GetProcessId(void)
{
    return (int)getpid();
}
