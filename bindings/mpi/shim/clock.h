/* The clock of the hot path: the time-stamp counter where it is invariant,
 * CLOCK_MONOTONIC elsewhere. SAPWOOD_MPI_CLOCK=monotonic or =cycles overrides the
 * choice; `cycles` is for virtual machines and simulators that hide the promise of
 * invariance. Ticks become nanoseconds by one multiplication when they are added.
 */
#ifndef SAPWOOD_CLOCK_H
#define SAPWOOD_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "visibility.h"

extern SAPWOOD_HIDDEN bool sapwood_clock_is_cycles;
/* Nanoseconds per tick, in 1 / 2^32. */
extern SAPWOOD_HIDDEN uint64_t sapwood_clock_scale;

/* One moment by both clocks. */
struct sapwood_instant {
    uint64_t ticks;
    uint64_t ns;
};

/* Now, by both clocks, as close together as five tries allow: a thread that is interrupted between
 * the two reads would shift all its later times by as much. */
SAPWOOD_HIDDEN struct sapwood_instant sapwood_clock_both(void);

/* Decides which clock it is. Ticks mean something only afterwards. */
void sapwood_clock_choose(void);

/* Measures the scale between the choice and now; waits, busy, until the two lie
 * SAPWOOD_CALIBRATION_NS_MIN apart, which MPI_Init has always used up before. */
void sapwood_clock_calibrate(void);

#define SAPWOOD_CALIBRATION_NS_MIN 2000000

static inline uint64_t sapwood_monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static SAPWOOD_HOT uint64_t sapwood_ticks(void)
{
#if defined(__x86_64__)
    if (__builtin_expect(sapwood_clock_is_cycles, 1))
        return __builtin_ia32_rdtsc();
#endif
    return sapwood_monotonic_ns();
}

/* Counters of two cores may differ by a few ticks; a negative span is none. */
static inline uint64_t sapwood_ns(uint64_t ticks)
{
    if ((int64_t)ticks < 0)
        return 0;
    return (uint64_t)(((unsigned __int128)ticks * sapwood_clock_scale) >> 32);
}

#endif
