/* What is tallied only when it was asked for: call sites, peers, communicators.
 *
 * SAPWOOD_MPI_EXTRAS has the words `call-sites`, `peers` and `communicators`, with commas
 * between them. Without it a wrapped call pays for one load that is always in the cache.
 */
#ifndef SAPWOOD_EXTRAS_H
#define SAPWOOD_EXTRAS_H

#include "library.h"
#include "observe.h"
#include "sizes.h"

/* Bits of SAPWOOD_EXTRA_...; 0 before counting begins. */
extern SAPWOOD_HIDDEN uint32_t sapwood_extras;

/* A call that has returned. */
struct sapwood_call {
    uint32_t function;
    unsigned class;
    uint64_t ticks;
    uint64_t bytes;
    uint64_t received;      /* those of the bytes that did not go to `dest` */
    const void *site;       /* where it was called, as the address after the call */
    MPI_Comm comm;          /* the one that it is on, if `has_comm` */
    bool has_comm;
    int dest;               /* the rank that it sends to, in that communicator; negative for none */
};

SAPWOOD_HIDDEN void sapwood_extra(const struct sapwood_call *call);

#define SAPWOOD_EXTRA(...) \
    do { \
        if (__builtin_expect(sapwood_extras != 0, 0)) \
            sapwood_extra(&(struct sapwood_call){.site = __builtin_return_address(0), __VA_ARGS__}); \
    } while (0)

/* Bytes of a request become known after its call was tallied. */
SAPWOOD_HIDDEN void sapwood_extra_later(uint32_t function, unsigned class, const void *site, uint64_t comm,
                                        uint64_t bytes);

#define SAPWOOD_EXTRA_LATER(...) \
    do { \
        if (__builtin_expect(sapwood_extras != 0, 0)) \
            sapwood_extra_later(__VA_ARGS__); \
    } while (0)

/* The bits that the environment asks for. */
uint32_t sapwood_extras_asked(void);

/* Before a communicator is freed, or after it is named: what was known no longer holds. */
void sapwood_extras_forget(MPI_Comm comm);

#endif
