/* How a rank waits: a short bounded spin where that has paid, then asleep in the kernel.
 *
 * A sleeper wakes from time to time to let MPI make progress, because another rank may
 * need this one's progress (a rendezvous of a message that was posted before) to come
 * to the reduction at all.
 */
#ifndef SAPWOOD_BYPASS_WAIT_H
#define SAPWOOD_BYPASS_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* What a communicator has learned of its waits. */
struct bypass_patience {
    uint64_t usual_ns;
    bool crowded;       /* more ranks than processors */
};

/* Called about once per second of waiting; true ends the wait. */
typedef bool bypass_give_up(void *argument);

/* Returns once *word is `wanted` (true) or `give_up` says so (false). */
bool bypass_wait(_Atomic uint32_t *word, uint32_t wanted, _Atomic uint32_t *sleepers,
                 struct bypass_patience *patience, bypass_give_up *give_up, void *argument);

/* Sets *word and wakes its sleepers. */
void bypass_tell(_Atomic uint32_t *word, uint32_t value, _Atomic uint32_t *sleepers);

/* Asks MPI what it needs to make progress. MPI is initialised. */
void bypass_wait_prepare(void);

/* Gives MPI a chance to make progress; at most once per 20 ms and thread. */
void bypass_progress_sometimes(uint64_t now_ns);

uint64_t bypass_now_ns(void);

#endif
