/*
 * A lock that its holder may take again.
 */
#ifndef XPLAT_LIGHTWEIGHT_MUTEX_H
#define XPLAT_LIGHTWEIGHT_MUTEX_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Mutex_t {
    void *data;
} Mutex_t;

/* NULL if there is no memory. */
Mutex_t *Mutex_construct(void);
/* Each gives 0, or the number of a system error. */
int Mutex_destruct(Mutex_t *mutex);
int Mutex_Lock(Mutex_t *mutex);
int Mutex_Unlock(Mutex_t *mutex);
int Mutex_Trylock(Mutex_t *mutex);

#ifdef __cplusplus
}
#endif

#endif
