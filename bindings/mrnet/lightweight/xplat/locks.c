/*
 * Locks over those of POSIX.
 */
#include "locks.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* One that is waited for stays where it is until the lock is freed. */
struct condition {
    unsigned int number;
    pthread_cond_t variable;
    struct condition *next;
};

struct mrn_lock {
    pthread_mutex_t mutex;
    struct condition *conditions;
};

struct mrn_lock *mrn_lock_new(void)
{
    struct mrn_lock *lock = calloc(1, sizeof *lock);
    pthread_mutexattr_t attributes;
    if (lock == NULL)
        return NULL;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock->mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return lock;
}

int mrn_lock_free(struct mrn_lock *lock)
{
    int error = pthread_mutex_destroy(&lock->mutex);
    if (error != 0)
        return error;
    while (lock->conditions != NULL) {
        struct condition *first = lock->conditions;
        lock->conditions = first->next;
        pthread_cond_destroy(&first->variable);
        free(first);
    }
    free(lock);
    return 0;
}

int mrn_lock_take(struct mrn_lock *lock)
{
    return pthread_mutex_lock(&lock->mutex);
}

int mrn_lock_try(struct mrn_lock *lock)
{
    return pthread_mutex_trylock(&lock->mutex);
}

int mrn_lock_leave(struct mrn_lock *lock)
{
    return pthread_mutex_unlock(&lock->mutex);
}

/* Takes the lock for itself: conditions are registered and signalled without it, too. */
static struct condition *find(struct mrn_lock *lock, unsigned int number)
{
    mrn_lock_take(lock);
    struct condition *found = lock->conditions;
    while (found != NULL && found->number != number)
        found = found->next;
    mrn_lock_leave(lock);
    return found;
}

int mrn_lock_register(struct mrn_lock *lock, unsigned int number)
{
    int error = 0;
    mrn_lock_take(lock);
    if (find(lock, number) == NULL) {
        struct condition *new = calloc(1, sizeof *new);
        if (new == NULL) {
            error = ENOMEM;
        } else {
            pthread_condattr_t attributes;
            pthread_condattr_init(&attributes);
            pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
            pthread_cond_init(&new->variable, &attributes);
            pthread_condattr_destroy(&attributes);
            new->number = number;
            new->next = lock->conditions;
            lock->conditions = new;
        }
    }
    mrn_lock_leave(lock);
    return error;
}

int mrn_lock_wait(struct mrn_lock *lock, unsigned int number, int milliseconds)
{
    struct condition *found = find(lock, number);
    struct timespec until;
    if (found == NULL)
        return -1;
    if (milliseconds == MRN_NO_LIMIT)
        return pthread_cond_wait(&found->variable, &lock->mutex);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += milliseconds / 1000;
    until.tv_nsec += milliseconds % 1000 * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    return pthread_cond_timedwait(&found->variable, &lock->mutex, &until);
}

int mrn_lock_wake(struct mrn_lock *lock, unsigned int number, int is_for_all)
{
    struct condition *found = find(lock, number);
    if (found == NULL)
        return -1;
    return is_for_all ? pthread_cond_broadcast(&found->variable)
                      : pthread_cond_signal(&found->variable);
}
