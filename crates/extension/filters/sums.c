/* Filters in C, for shared objects and WebAssembly alike:
 *
 *   sum3    adds up arrays of doubles of one length, one from each packet of the wave
 *   total   adds up one whole number from each packet over PERIOD waves (one %d) and emits their
 *           sum with the last of them; what it holds is handed over when its process dies
 *   quorum  a synchronisation rule: a wave goes on when AT_LEAST children (one %d) have arrived,
 *           or 10 s after its first packet
 */
#include "sapwood_filter.h"

#if defined(__wasm__)
/* Most states in one instance of the module. */
#define STATES_MAX 64
#else
#include <stdlib.h>
#endif

/* ------------------------------------------------------------------------------------- sum3 */

static int32_t sum3(void *state, const sapwood_filter_wave_t *wave, sapwood_filter_out_t *out)
{
    const sapwood_filter_value_t *first = wave->packets[0].values;
    (void)state;
    for (uint32_t p = 0; p < wave->packet_count; p++) {
        const sapwood_filter_packet_t *packet = &wave->packets[p];
        if (packet->value_count != 1 ||
            !sapwood_filter_is_array(packet->values, SAPWOOD_FILTER_DOUBLE))
            return sapwood_filter_fail(out, "takes one %alf");
        if (packet->values->count != first->count)
            return sapwood_filter_fail(out, "the arrays of a wave differ in length");
    }
#if defined(__wasm__)
    /* What it is given is a copy: the sum may stand where the first packet was. */
    double *sum = (double *)first->data;
    uint32_t begin = 1;
#else
    double *sum = (double *)sapwood_filter_emit_room(out, wave->packets[0].tag,
                                                     SAPWOOD_FILTER_DOUBLE, first->count);
    uint32_t begin = 0;
    if (sum == NULL)
        return 1;
    for (uint64_t i = 0; i < first->count; i++)
        sum[i] = 0;
#endif
    for (uint32_t p = begin; p < wave->packet_count; p++) {
        const double *addend = (const double *)wave->packets[p].values->data;
        for (uint64_t i = 0; i < first->count; i++)
            sum[i] += addend[i];
    }
#if defined(__wasm__)
    sapwood_filter_value_t value = sapwood_filter_doubles(sum, first->count);
    return sapwood_filter_emit(out, wave->packets[0].tag, &value, 1);
#else
    return 0;
#endif
}

/* ------------------------------------------------------------------------------------ total */

struct total {
    int64_t sum;
    int32_t waves;
    int32_t period;
    int32_t is_used;
};

static struct total *new_total(void)
{
#if defined(__wasm__)
    static struct total totals[STATES_MAX];
    for (int i = 0; i < STATES_MAX; i++) {
        if (!totals[i].is_used) {
            totals[i].is_used = 1;
            return &totals[i];
        }
    }
    return NULL;
#else
    return (struct total *)calloc(1, sizeof(struct total));
#endif
}

static void free_total(void *state)
{
#if defined(__wasm__)
    ((struct total *)state)->is_used = 0;
#else
    free(state);
#endif
}

/* Reads the only parameter, one %d. */
static int32_t read_int32(const sapwood_filter_value_t *values, uint32_t count, int32_t *number)
{
    if (count != 1 || values->element != SAPWOOD_FILTER_INT32 ||
        values->shape != SAPWOOD_FILTER_SCALAR)
        return 1;
    *number = *(const int32_t *)values->data;
    return *number < 1;
}

static int32_t create_total(const sapwood_filter_value_t *parameters, uint32_t count, void **state,
                            sapwood_filter_out_t *out)
{
    int32_t period;
    if (read_int32(parameters, count, &period))
        return sapwood_filter_fail(out, "takes the waves of a period, one %d of at least 1");
    struct total *total = new_total();
    if (total == NULL)
        return sapwood_filter_fail(out, "no memory for its state");
    total->sum = 0;
    total->waves = 0;
    total->period = period;
    *state = total;
    return 0;
}

static int32_t transform_total(void *state, const sapwood_filter_wave_t *wave,
                               sapwood_filter_out_t *out)
{
    struct total *total = (struct total *)state;
    for (uint32_t p = 0; p < wave->packet_count; p++) {
        const sapwood_filter_packet_t *packet = &wave->packets[p];
        if (packet->value_count != 1 || packet->values->element != SAPWOOD_FILTER_INT64 ||
            packet->values->shape != SAPWOOD_FILTER_SCALAR)
            return sapwood_filter_fail(out, "takes one %ld");
        total->sum += *(const int64_t *)packet->values->data;
    }
    total->waves++;
    /* Every process ends its periods with the same waves. */
    if ((wave->wave + 1) % (uint64_t)total->period != 0)
        return 0;
    sapwood_filter_value_t value = sapwood_filter_int64(&total->sum);
    int32_t code = sapwood_filter_emit(out, wave->packets[0].tag, &value, 1);
    total->sum = 0;
    total->waves = 0;
    return code;
}

static int32_t save_total(void *state, sapwood_filter_out_t *out)
{
    struct total *total = (struct total *)state;
    if (total->waves == 0)
        return 0;
    int64_t waves = total->waves;
    sapwood_filter_value_t values[2];
    values[0] = sapwood_filter_int64(&total->sum);
    values[1] = sapwood_filter_int64(&waves);
    return sapwood_filter_emit(out, 0, values, 2);
}

static int32_t merge_total(void *state, const sapwood_filter_value_t *values, uint32_t count,
                           sapwood_filter_out_t *out)
{
    struct total *total = (struct total *)state;
    if (count != 2 || values[0].element != SAPWOOD_FILTER_INT64)
        return sapwood_filter_fail(out, "was given a state that is not its own");
    total->sum += *(const int64_t *)values[0].data;
    return 0;
}

/* ----------------------------------------------------------------------------------- quorum */

static int32_t create_quorum(const sapwood_filter_value_t *parameters, uint32_t count,
                             void **state, sapwood_filter_out_t *out)
{
    int32_t at_least;
    if (read_int32(parameters, count, &at_least))
        return sapwood_filter_fail(out, "takes a number of children, one %d of at least 1");
    *state = (void *)(intptr_t)at_least;
    return 0;
}

static int32_t decide_quorum(void *state, const sapwood_filter_arrivals_t *arrivals,
                             int64_t *wait_ns, sapwood_filter_out_t *out)
{
    const uint64_t patience_ns = UINT64_C(10000000000);
    (void)out;
    if (arrivals->arrived >= (uint32_t)(intptr_t)state || arrivals->elapsed_ns >= patience_ns)
        *wait_ns = SAPWOOD_FILTER_GO;
    else
        *wait_ns = (int64_t)(patience_ns - arrivals->elapsed_ns);
    return 0;
}

/* ------------------------------------------------------------------------------ the library */

static const sapwood_filter_t filters[] = {
    {.name = "sum3", .transform = sum3},
    {.name = "total",
     .create = create_total,
     .transform = transform_total,
     .destroy = free_total,
     .state_kind = SAPWOOD_FILTER_COMPOSABLE,
     .save = save_total,
     .merge = merge_total},
    {.name = "quorum", .create = create_quorum, .decide = decide_quorum},
};

static const sapwood_filter_library_t library = {
    SAPWOOD_FILTER_VERSION, sizeof(sapwood_filter_t), sizeof filters / sizeof filters[0], filters};

const sapwood_filter_library_t *sapwood_filter_v1(void)
{
    return &library;
}
