/*
 * Threads.
 */
#ifndef XPLAT_LIGHTWEIGHT_THREAD_H
#define XPLAT_LIGHTWEIGHT_THREAD_H

#ifdef __cplusplus
extern "C" {
#endif

typedef void *(*Thread_Func)(void *data);
typedef long Thread_Id;

/* Each that gives an int gives 0, or the number of a system error. */
int Thread_Create(Thread_Func function, void *data, Thread_Id *id);
Thread_Id Thread_GetId(void);
int Thread_Join(Thread_Id id, void **result);
int Thread_Cancel(Thread_Id id);
void Thread_Exit(void *result);

#ifdef __cplusplus
}
#endif

#endif
