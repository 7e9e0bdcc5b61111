/* Choice and calibration of the clock; see clock.h. */
#define _GNU_SOURCE
#include "clock.h"

#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
static const bool have_counter = true;
#else
static const bool have_counter = false;
#endif

/* A counter slower or faster than this is not believed. */
enum { MHZ_MIN = 100, MHZ_MAX = 20000 };
#define IDENTITY (UINT64_C(1) << 32)

bool sapwood_clock_is_cycles;
uint64_t sapwood_clock_scale = IDENTITY;

static struct sapwood_instant chosen;

struct sapwood_instant sapwood_clock_both(void)
{
    struct sapwood_instant best = {0, 0};
    uint64_t narrowest = UINT64_MAX;
    for (int attempt = 0; attempt < 5; attempt++) {
        uint64_t before = sapwood_ticks();
        uint64_t ns = sapwood_monotonic_ns();
        uint64_t after = sapwood_ticks();
        if (after - before < narrowest) {
            narrowest = after - before;
            best = (struct sapwood_instant){before + (after - before) / 2, ns};
        }
    }
    return best;
}

/* Whether the processor promises a counter of constant rate that never stops. */
static bool counter_is_invariant(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007u, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
#else
    return false;
#endif
}

void sapwood_clock_choose(void)
{
    const char *wanted = getenv("SAPWOOD_MPI_CLOCK");
    if (wanted != NULL && strcmp(wanted, "monotonic") == 0)
        sapwood_clock_is_cycles = false;
    else if (wanted != NULL && strcmp(wanted, "cycles") == 0)
        sapwood_clock_is_cycles = have_counter;
    else
        sapwood_clock_is_cycles = have_counter && counter_is_invariant();
    chosen = sapwood_clock_both();
}

void sapwood_clock_calibrate(void)
{
    if (!sapwood_clock_is_cycles)
        return;
    struct sapwood_instant now;
    do
        now = sapwood_clock_both();
    while (now.ns - chosen.ns < SAPWOOD_CALIBRATION_NS_MIN);
    uint64_t ticks = now.ticks - chosen.ticks;
    uint64_t ns = now.ns - chosen.ns;
    if (ticks / MHZ_MAX > ns / 1000 || ticks / MHZ_MIN < ns / 1000) {
        sapwood_clock_is_cycles = false;
        return;
    }
    sapwood_clock_scale = (uint64_t)(((unsigned __int128)ns << 32) / ticks);
}
