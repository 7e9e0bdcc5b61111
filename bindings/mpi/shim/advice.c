/* What the program gets of the latest round; see sapwood_mpi.h and control.h. */
#include <stddef.h>
#include <string.h>

#include "control.h"
#include "observe.h"
#include "sapwood_mpi.h"

/* A leaf writes a page of advice in microseconds; one that died while it wrote is not waited for. */
enum { TRIES = 1000 };

#define READ(word) atomic_load_explicit(&(word), memory_order_relaxed)

static double seconds(uint64_t ns)
{
    return (double)ns * 1e-9;
}

static double excess(uint64_t most, uint64_t mean)
{
    return mean == 0 ? 0 : (double)most / (double)mean - 1;
}

/* Asks for advice from the next round on. Whether there is some already. */
static bool is_there(void)
{
    if (READ(sapwood_control.wants_advice) == 0)
        atomic_store_explicit(&sapwood_control.wants_advice, 1, memory_order_relaxed);
    return READ(sapwood_control.round) != 0;
}

/* Begins to read; an odd number when it is being written. */
static uint32_t sequence_before(void)
{
    return atomic_load_explicit(&sapwood_control.sequence, memory_order_acquire);
}

static bool is_unchanged(uint32_t before)
{
    atomic_thread_fence(memory_order_acquire);
    return before % 2 == 0 && READ(sapwood_control.sequence) == before;
}

SAPWOOD_EXPORT int sapwood_advice(struct sapwood_advice *advice)
{
    if (advice == NULL)
        return 0;
    bool may = is_there();
    for (int tries = 0; may && tries < TRIES; tries++) {
        uint32_t before = sequence_before();
        uint64_t mean = READ(sapwood_control.compute_mean_ns), most = READ(sapwood_control.compute_max_ns);
        *advice = (struct sapwood_advice){
            .round = READ(sapwood_control.round),
            .ranks = READ(sapwood_control.ranks),
            .slowest_rank = READ(sapwood_control.slowest_rank),
            .compute_mean_s = seconds(mean),
            .compute_max_s = seconds(most),
            .imbalance = excess(most, mean),
        };
        memcpy(advice->slowest_class, sapwood_control.slowest_class, sizeof advice->slowest_class - 1);
        if (is_unchanged(before))
            return 1;
    }
    memset(advice, 0, sizeof *advice);
    return 0;
}

static const struct sapwood_advice_entry *entry_of(const char *name)
{
    uint32_t entries = READ(sapwood_control.entries);
    for (uint32_t i = 0; i < entries && i < SAPWOOD_ADVICE_ENTRIES; i++)
        if (strncmp(sapwood_control.entry[i].name, name, SAPWOOD_ADVICE_NAME_BYTES - 1) == 0)
            return &sapwood_control.entry[i];
    return NULL;
}

SAPWOOD_EXPORT int sapwood_advice_event(const char *name, struct sapwood_event_advice *advice)
{
    if (name == NULL || advice == NULL)
        return 0;
    bool may = is_there();
    for (int tries = 0; may && tries < TRIES; tries++) {
        uint32_t before = sequence_before();
        const struct sapwood_advice_entry *entry = entry_of(name);
        if (entry != NULL) {
            uint64_t mean = READ(entry->time_mean_ns), most = READ(entry->time_max_ns);
            *advice = (struct sapwood_event_advice){
                .round = READ(sapwood_control.round),
                .count = READ(entry->count),
                .ranks = READ(entry->ranks),
                .max_rank = READ(entry->max_rank),
                .time_mean_s = seconds(mean),
                .time_max_s = seconds(most),
                .imbalance = excess(most, mean),
            };
        }
        if (is_unchanged(before) && entry != NULL)
            return 1;
        if (is_unchanged(before))
            break;
    }
    memset(advice, 0, sizeof *advice);
    return 0;
}
