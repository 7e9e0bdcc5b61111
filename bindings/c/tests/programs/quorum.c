/*
 * A file of filters for filters.c: a sum of numbers, and a synchronisation rule that forwards a
 * wave with the number of children that its parameter text states.
 */
#include <sapwood_filter.h>

static int32_t add(void *state, const sapwood_filter_wave_t *wave, sapwood_filter_out_t *out)
{
    int32_t sum = 0;
    (void)state;
    for (uint32_t at = 0; at < wave->packet_count; at++) {
        const sapwood_filter_packet_t *packet = &wave->packets[at];
        if (packet->value_count != 1 || packet->values->element != SAPWOOD_FILTER_INT32)
            return sapwood_filter_fail(out, "takes one %d");
        sum += *(const int32_t *)packet->values->data;
    }
    sapwood_filter_value_t value =
        sapwood_filter_value(&sum, 1, sizeof sum, SAPWOOD_FILTER_INT32, SAPWOOD_FILTER_SCALAR);
    return sapwood_filter_emit(out, wave->packets[0].tag, &value, 1);
}

static int32_t create_quorum(const sapwood_filter_value_t *parameters, uint32_t count, void **state,
                             sapwood_filter_out_t *out)
{
    const char *digits = count == 1 ? parameters->data : NULL;
    if (digits == NULL || parameters->element != SAPWOOD_FILTER_STRING || parameters->count != 1 ||
        *digits < '1' || *digits > '9')
        return sapwood_filter_fail(out, "takes a number of children, as a text of one digit");
    *state = (void *)(intptr_t)(*digits - '0');
    return 0;
}

static int32_t decide(void *state, const sapwood_filter_arrivals_t *arrivals, int64_t *wait_ns,
                      sapwood_filter_out_t *out)
{
    (void)out;
    *wait_ns = arrivals->arrived >= (uint32_t)(intptr_t)state ? SAPWOOD_FILTER_GO : SAPWOOD_FILTER_WAIT;
    return 0;
}

static const sapwood_filter_t filters[] = {
    {.name = "add", .transform = add},
    {.name = "quorum", .create = create_quorum, .decide = decide},
};

static const sapwood_filter_library_t library = {SAPWOOD_FILTER_VERSION, sizeof(sapwood_filter_t),
                                                 sizeof filters / sizeof filters[0], filters};

const sapwood_filter_library_t *sapwood_filter_v1(void)
{
    return &library;
}
