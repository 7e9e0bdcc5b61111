/*
 * A lock that its holder may take again, with numbered conditions: what mutexes and monitors are in
 * both languages.
 */
#ifndef MRN_XPLAT_LOCKS_H
#define MRN_XPLAT_LOCKS_H

#ifdef __cplusplus
extern "C" {
#endif

#define MRN_NO_LIMIT (-1)

struct mrn_lock;

/* NULL if there is no memory. */
struct mrn_lock *mrn_lock_new(void);
/* Each gives 0, or the number of a system error; -1 for a condition that is not registered. */
int mrn_lock_free(struct mrn_lock *lock);
int mrn_lock_take(struct mrn_lock *lock);
int mrn_lock_try(struct mrn_lock *lock);
int mrn_lock_leave(struct mrn_lock *lock);
int mrn_lock_register(struct mrn_lock *lock, unsigned int number);
/* With the lock held. Gives ETIMEDOUT after this many milliseconds. */
int mrn_lock_wait(struct mrn_lock *lock, unsigned int number, int milliseconds);
int mrn_lock_wake(struct mrn_lock *lock, unsigned int number, int is_for_all);

#ifdef __cplusplus
}
#endif

#endif
