/* Filters that do what filters must not. */
#if !defined(__wasm__)
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#endif

#include "sapwood_filter.h"

/* A wave that is refused with a reason. */
static int32_t refuse(void *state, const sapwood_filter_wave_t *wave, sapwood_filter_out_t *out)
{
    (void)state;
    (void)wave;
    return sapwood_filter_fail(out, "does not like this wave");
}

/* A failure without a reason. */
static int32_t silent(void *state, const sapwood_filter_wave_t *wave, sapwood_filter_out_t *out)
{
    (void)state;
    (void)wave;
    (void)out;
    return 7;
}

/* A value that is none. */
static int32_t rubbish(void *state, const sapwood_filter_wave_t *wave, sapwood_filter_out_t *out)
{
    sapwood_filter_value_t value = sapwood_filter_value(wave, 1, 8, 99, 0);
    (void)state;
    sapwood_filter_emit(out, 0, &value, 1);
    return 0;
}

/* An array of strings whose lengths lead out of it. */
static int32_t forged(void *state, const sapwood_filter_wave_t *wave, sapwood_filter_out_t *out)
{
    static const uint64_t strings[2] = {UINT64_MAX - 3, 0};
    sapwood_filter_value_t value =
        sapwood_filter_value(strings, 2, 8, SAPWOOD_FILTER_STRING, SAPWOOD_FILTER_ARRAY);
    (void)state;
    (void)wave;
    sapwood_filter_emit(out, 0, &value, 1);
    return 0;
}

static int32_t without_end(void)
{
    volatile uint64_t turns = 0;
    while (turns < UINT64_MAX)
        turns = turns + 1;
    return 0;
}

/* One that never comes back. */
static int32_t loop(void *state, const sapwood_filter_wave_t *wave, sapwood_filter_out_t *out)
{
    (void)state;
    (void)wave;
    (void)out;
    return without_end();
}

/* A synchronisation rule that never decides. */
static int32_t think(void *state, const sapwood_filter_arrivals_t *arrivals, int64_t *wait_ns,
                     sapwood_filter_out_t *out)
{
    (void)state;
    (void)arrivals;
    (void)wait_ns;
    (void)out;
    return without_end();
}

#if !defined(__wasm__)
/* One whose instance is made after this many milliseconds, or never for 0. */
static int32_t create_slowly(const sapwood_filter_value_t *parameters, uint32_t count, void **state,
                             sapwood_filter_out_t *out)
{
    if (count != 1 || parameters->element != SAPWOOD_FILTER_UINT32)
        return sapwood_filter_fail(out, "takes milliseconds, one %ud");
    uint32_t milliseconds = *(const uint32_t *)parameters->data;
    while (milliseconds == 0)
        pause();
    struct timespec time = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000000};
    nanosleep(&time, NULL);
    *state = malloc(1);
    return 0;
}

static void destroy_slow(void *state)
{
    free(state);
}

/* It gives what it is given, which says that its instance is there. */
static int32_t slow(void *state, const sapwood_filter_wave_t *wave, sapwood_filter_out_t *out)
{
    if (!state)
        return sapwood_filter_fail(out, "was called before it was made");
    return sapwood_filter_emit(out, wave->packets[0].tag, wave->packets[0].values,
                               wave->packets[0].value_count);
}
#endif

/* One that takes its process along, at the rank that it is told. */
static int32_t create_crash(const sapwood_filter_value_t *parameters, uint32_t count, void **state,
                            sapwood_filter_out_t *out)
{
    if (count != 1 || parameters->element != SAPWOOD_FILTER_UINT32)
        return sapwood_filter_fail(out, "takes a rank, one %ud");
    *state = (void *)(uintptr_t) * (const uint32_t *)parameters->data;
    return 0;
}

static int32_t crash(void *state, const sapwood_filter_wave_t *wave, sapwood_filter_out_t *out)
{
    if (wave->rank == (uint32_t)(uintptr_t)state)
        __builtin_trap();
    int64_t sum = 0;
    for (uint32_t p = 0; p < wave->packet_count; p++)
        sum += *(const int64_t *)wave->packets[p].values->data;
    sapwood_filter_value_t value = sapwood_filter_int64(&sum);
    return sapwood_filter_emit(out, wave->packets[0].tag, &value, 1);
}

#if defined(__wasm__)
/* One that asks for 10 GB. */
static int32_t grow(void *state, const sapwood_filter_wave_t *wave, sapwood_filter_out_t *out)
{
    (void)state;
    (void)wave;
    for (int i = 0; i < 160000; i++) {
        if (__builtin_wasm_memory_grow(0, 1) == (unsigned long)-1)
            return sapwood_filter_fail(out, "was given no more memory");
    }
    return 0;
}

/* One that emits what is not in its memory. */
static int32_t outside(void *state, const sapwood_filter_wave_t *wave, sapwood_filter_out_t *out)
{
    sapwood_filter_value_t value = sapwood_filter_doubles((const double *)0xfffffff0u, 1000);
    (void)state;
    (void)wave;
    sapwood_filter_emit(out, 0, &value, 1);
    return 0;
}

/* One that emits without end, whatever it is told. */
static int32_t flood(void *state, const sapwood_filter_wave_t *wave, sapwood_filter_out_t *out)
{
    (void)state;
    for (;;)
        sapwood_filter_emit(out, wave->packets[0].tag, wave->packets[0].values,
                            wave->packets[0].value_count);
}

/* One that gives reasons without end. */
static int32_t nag(void *state, const sapwood_filter_wave_t *wave, sapwood_filter_out_t *out)
{
    (void)state;
    (void)wave;
    for (;;)
        sapwood_filter_fail(out, "does not like this wave");
}
#endif

static const sapwood_filter_t filters[] = {
    {.name = "refuse", .transform = refuse},
    {.name = "silent", .transform = silent},
    {.name = "rubbish", .transform = rubbish},
    {.name = "forged", .transform = forged},
    {.name = "loop", .transform = loop},
    {.name = "think", .decide = think},
    {.name = "crash", .create = create_crash, .transform = crash},
#if !defined(__wasm__)
    {.name = "slow", .create = create_slowly, .destroy = destroy_slow, .transform = slow},
#endif
#if defined(__wasm__)
    {.name = "grow", .transform = grow},
    {.name = "outside", .transform = outside},
    {.name = "flood", .transform = flood},
    {.name = "nag", .transform = nag},
#endif
};

/* Tests make files of other versions out of this one. */
#ifndef VERSION
#define VERSION SAPWOOD_FILTER_VERSION
#endif

static const sapwood_filter_library_t library = {
    VERSION, sizeof(sapwood_filter_t), sizeof filters / sizeof filters[0], filters};

const sapwood_filter_library_t *sapwood_filter_v1(void)
{
    return &library;
}
