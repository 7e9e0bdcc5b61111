/* sapwood_filter.h: filters of one's own for a Sapwood network.
 *
 * A filter turns the packets of one wave at one process of the tree into packets that are
 * forwarded. Filters of your own are written against this header alone and built as a shared
 * object, or for WebAssembly from the same source; nothing is linked. A stream names them by the
 * file and the name in it: "native:libmine.so#mean", "wasm:mine.wasm#mean". docs/custom-filters.md
 * begins with a complete one.
 *
 * Errors: functions of a filter return 0, or another number on failure; before that they state the
 * reason with sapwood_filter_fail. A filter that fails costs the present wave: the front-end
 * receives the reason instead of the answer, and the stream goes on.
 *
 * Ownership: the inputs of a filter (waves, packets, values, parameters) belong to the caller, must
 * not be written to, and are invalid when the function returns. Emitted values are copied. The
 * state that a filter makes in create is its own until destroy.
 *
 * Threads: one instance is used by one thread at a time, though not always by the same one.
 * Different instances, of different streams, may run at the same time, so that variables of the
 * whole file need care. A filter must not throw or jump out of its functions.
 *
 * Trust: a shared object runs inside the process: one that crashes takes its process along, and
 * the tree repairs itself around it. WebAssembly has its own memory, and limits of time and memory.
 *
 * Everything is little-endian; structs have the members and sizes written here and are only ever
 * added to at their end, with a greater version.
 */
#ifndef SAPWOOD_FILTER_H
#define SAPWOOD_FILTER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface, which a library states. */
#define SAPWOOD_FILTER_VERSION 1u

#if defined(__wasm__)
#define SAPWOOD_FILTER_EXPORT __attribute__((export_name("sapwood_filter_v1")))
#define SAPWOOD_FILTER_IMPORT(name) \
    __attribute__((import_module("sapwood"), import_name(name))) extern
#elif defined(__GNUC__)
#define SAPWOOD_FILTER_EXPORT __attribute__((visibility("default")))
#else
#define SAPWOOD_FILTER_EXPORT
#endif

/* What one element of a value is; beside it the scalar directive of a format string. */
enum sapwood_filter_element {
    SAPWOOD_FILTER_INT8 = 1,    /* %c */
    SAPWOOD_FILTER_UINT8 = 2,   /* %uc */
    SAPWOOD_FILTER_INT16 = 3,   /* %hd */
    SAPWOOD_FILTER_UINT16 = 4,  /* %uhd */
    SAPWOOD_FILTER_INT32 = 5,   /* %d */
    SAPWOOD_FILTER_UINT32 = 6,  /* %ud */
    SAPWOOD_FILTER_INT64 = 7,   /* %ld */
    SAPWOOD_FILTER_UINT64 = 8,  /* %uld */
    SAPWOOD_FILTER_FLOAT = 9,   /* %f */
    SAPWOOD_FILTER_DOUBLE = 10, /* %lf */
    SAPWOOD_FILTER_STRING = 11  /* %s */
};

/* The number of elements of a value. */
enum sapwood_filter_shape {
    SAPWOOD_FILTER_SCALAR = 0,     /* one: %d */
    SAPWOOD_FILTER_ARRAY = 1,      /* fewer than 2^32: %ad */
    SAPWOOD_FILTER_LARGE_ARRAY = 2 /* any number: %Ad */
};

/* One value, in place: 32 bytes. */
typedef struct sapwood_filter_value {
    /* The first element, at a multiple of 8; of a string its first byte (there is no NUL behind the
     * last); of an array of strings the first one's length: see sapwood_filter_next_string. */
    const void *data;
#if UINTPTR_MAX == UINT32_MAX
    uint32_t padding;
#endif
    /* The number of elements: 1 for a number, the bytes of a string, the strings of an array. */
    uint64_t count;
    /* The number of bytes at data. */
    uint64_t bytes;
    /* enum sapwood_filter_element */
    uint32_t element;
    /* enum sapwood_filter_shape */
    uint32_t shape;
} sapwood_filter_value_t;

/* Ranks from first to last, both among them. */
typedef struct sapwood_filter_ranks {
    uint32_t first;
    uint32_t last;
} sapwood_filter_ranks_t;

/* Flags of a packet. */
enum {
    SAPWOOD_FILTER_FILTERED = 1, /* a filter further down made it: its values are a partial result */
    SAPWOOD_FILTER_LATE = 2      /* its wave had gone on before it came */
};

/* One packet of a wave. */
typedef struct sapwood_filter_packet {
    const sapwood_filter_value_t *values;
    /* The contributors, in order; none on the way down. */
    const sapwood_filter_ranks_t *contributors;
    uint32_t value_count;
    uint32_t contributor_ranges;
    int32_t tag;
    /* The rank of the process that made it. */
    uint32_t origin;
    uint32_t flags;
    uint32_t reserved;
} sapwood_filter_packet_t;

/* One wave at one process. */
typedef struct sapwood_filter_wave {
    /* In the order of the children that sent them; at least one. */
    const sapwood_filter_packet_t *packets;
    /* The contributors of all packets together; none on the way down. */
    const sapwood_filter_ranks_t *contributors;
    uint32_t packet_count;
    uint32_t contributor_ranges;
    /* The wave's number in its stream; 0 on the way down. */
    uint64_t wave;
    uint32_t stream;
    /* The rank of this process. */
    uint32_t rank;
    /* 1 at the front-end, whose output is the answer. */
    uint32_t is_root;
    /* How many children of this process lead to back-ends of the stream, or did. */
    uint32_t children;
    /* How many back-ends of the stream are below this process, or were. */
    uint32_t back_ends;
    uint32_t reserved;
} sapwood_filter_wave_t;

/* The parts of an incomplete wave that have arrived, for a synchronisation rule. */
typedef struct sapwood_filter_arrivals {
    /* The back-ends whose data has arrived. */
    const sapwood_filter_ranks_t *contributors;
#if UINTPTR_MAX == UINT32_MAX
    uint32_t padding;
#endif
    uint64_t wave;
    /* The time since the first packet of the wave arrived, in nanoseconds. */
    uint64_t elapsed_ns;
    uint32_t contributor_ranges;
    uint32_t stream;
    uint32_t rank;
    uint32_t is_root;
    /* How many children have sent their part, of how many that the wave waits for. */
    uint32_t arrived;
    uint32_t expected;
    /* How many back-ends of the stream are below this process, or were. */
    uint32_t back_ends;
    uint32_t reserved;
} sapwood_filter_arrivals_t;

/* The output of a filter: its packets, or the reason of its failure. Only valid during the call. */
typedef struct sapwood_filter_out sapwood_filter_out_t;

/* The direction of a packet. */
enum {
    SAPWOOD_FILTER_ON = 0,  /* on, in the direction of the wave */
    SAPWOOD_FILTER_BACK = 1 /* back: down from an upward filter, up from a downward one */
};

#if defined(__wasm__)
SAPWOOD_FILTER_IMPORT("emit")
int32_t sapwood_filter_send(sapwood_filter_out_t *out, uint32_t way, int32_t tag,
                            const sapwood_filter_value_t *values, uint32_t count);
SAPWOOD_FILTER_IMPORT("fail")
int32_t sapwood_filter_fail_with(sapwood_filter_out_t *out, const char *text, uint32_t bytes);
#else
struct sapwood_filter_out {
    int32_t (*send)(sapwood_filter_out_t *out, uint32_t way, int32_t tag,
                    const sapwood_filter_value_t *values, uint32_t count);
    void *(*send_array)(sapwood_filter_out_t *out, uint32_t way, int32_t tag, uint32_t element,
                        uint64_t count);
    int32_t (*fail)(sapwood_filter_out_t *out, const char *text, uint32_t bytes);
};

static inline int32_t sapwood_filter_send(sapwood_filter_out_t *out, uint32_t way, int32_t tag,
                                          const sapwood_filter_value_t *values, uint32_t count)
{
    return out->send(out, way, tag, values, count);
}

static inline int32_t sapwood_filter_fail_with(sapwood_filter_out_t *out, const char *text,
                                               uint32_t bytes)
{
    return out->fail(out, text, bytes);
}

/* Emits a packet of one array of `count` numbers and returns the memory for them, so that a large
 * result is not copied: valid until the next function of `out`, or the return. Its initial contents
 * are unspecified. NULL when the wave has failed. Not in WebAssembly. */
static inline void *sapwood_filter_emit_room(sapwood_filter_out_t *out, int32_t tag,
                                             uint32_t element, uint64_t count)
{
    return out->send_array(out, SAPWOOD_FILTER_ON, tag, element, count);
}
#endif

/* Emits a packet of these values, at most 64, in the direction of the wave. Returns 0, or 1 when
 * they are invalid, which fails the wave; `return` it. */
static inline int32_t sapwood_filter_emit(sapwood_filter_out_t *out, int32_t tag,
                                          const sapwood_filter_value_t *values, uint32_t count)
{
    return sapwood_filter_send(out, SAPWOOD_FILTER_ON, tag, values, count);
}

/* As sapwood_filter_emit, but the packet is sent in the opposite direction. */
static inline int32_t sapwood_filter_reply(sapwood_filter_out_t *out, int32_t tag,
                                           const sapwood_filter_value_t *values, uint32_t count)
{
    return sapwood_filter_send(out, SAPWOOD_FILTER_BACK, tag, values, count);
}

/* States why the filter fails: UTF-8, cut at 4096 bytes. Returns 1, so that a filter can
 * `return sapwood_filter_fail(out, "...")`. */
static inline int32_t sapwood_filter_fail(sapwood_filter_out_t *out, const char *text)
{
    uint32_t bytes = 0;
    while (text[bytes] != '\0')
        bytes++;
    return sapwood_filter_fail_with(out, text, bytes);
}

/* A value of `count` elements at `data`; of strings and numbers alike. */
static inline sapwood_filter_value_t sapwood_filter_value(const void *data, uint64_t count,
                                                          uint64_t element_bytes, uint32_t element,
                                                          uint32_t shape)
{
    sapwood_filter_value_t value;
    value.data = data;
#if UINTPTR_MAX == UINT32_MAX
    value.padding = 0;
#endif
    value.count = count;
    value.bytes = count * element_bytes;
    value.element = element;
    value.shape = shape;
    return value;
}

static inline sapwood_filter_value_t sapwood_filter_double(const double *number)
{
    return sapwood_filter_value(number, 1, 8, SAPWOOD_FILTER_DOUBLE, SAPWOOD_FILTER_SCALAR);
}

static inline sapwood_filter_value_t sapwood_filter_doubles(const double *numbers, uint64_t count)
{
    return sapwood_filter_value(numbers, count, 8, SAPWOOD_FILTER_DOUBLE, SAPWOOD_FILTER_ARRAY);
}

static inline sapwood_filter_value_t sapwood_filter_int64(const int64_t *number)
{
    return sapwood_filter_value(number, 1, 8, SAPWOOD_FILTER_INT64, SAPWOOD_FILTER_SCALAR);
}

static inline sapwood_filter_value_t sapwood_filter_string(const char *bytes, uint64_t count)
{
    return sapwood_filter_value(bytes, count, 1, SAPWOOD_FILTER_STRING, SAPWOOD_FILTER_SCALAR);
}

/* Whether a value is an array of that element, of either length. */
static inline int sapwood_filter_is_array(const sapwood_filter_value_t *value, uint32_t element)
{
    return value->element == element && value->shape != SAPWOOD_FILTER_SCALAR;
}

/* Iterates over the strings of an array: begin with *at = value.data and count them by value.count.
 * Returns the bytes of the string, which has no NUL, and their number. An array of strings is
 * emitted in its memory layout: for each its length in 8 bytes, its bytes, and 0 up to the next
 * multiple of 8. */
static inline const char *sapwood_filter_next_string(const void **at, uint64_t *bytes)
{
    const char *place = (const char *)*at;
    *bytes = *(const uint64_t *)*at;
    *at = place + 8 + ((*bytes + 7) / 8) * 8;
    return place + 8;
}

/* The state of an instance from wave to wave, and its fate when its process dies. */
enum {
    SAPWOOD_FILTER_STATELESS = 0,
    /* A new instance rebuilds it by itself. */
    SAPWOOD_FILTER_REBUILDABLE = 1,
    /* It is saved from time to time, and merged into the instance of the parent. */
    SAPWOOD_FILTER_COMPOSABLE = 2
};

/* The decisions of a synchronisation rule, besides a time. */
#define SAPWOOD_FILTER_GO INT64_C(0)
#define SAPWOOD_FILTER_WAIT INT64_MAX

/* One filter, or one synchronisation rule. Functions that are not needed are NULL. */
typedef struct sapwood_filter {
    /* The name in streams. */
    const char *name;
    /* Makes an instance from the stream's parameters; *state is NULL before, and its value after
     * the call is passed to all other functions. It is called on a thread of its own; the opening
     * of a stream waits for it for 100 ms, and further time counts as the first wave's. NULL for a
     * filter without parameters and state. */
    int32_t (*create)(const sapwood_filter_value_t *parameters, uint32_t count, void **state,
                      sapwood_filter_out_t *out);
    /* Handles one wave. Emitted packets are forwarded in their order; a wave for which none is
     * emitted ends here without a value. NULL for a rule. */
    int32_t (*transform)(void *state, const sapwood_filter_wave_t *wave,
                         sapwood_filter_out_t *out);
    /* Frees an instance. Not called in WebAssembly, where each has a memory of its own. */
    void (*destroy)(void *state);
    /* SAPWOOD_FILTER_STATELESS, _REBUILDABLE or _COMPOSABLE. */
    uint32_t state_kind;
    /* Of a composable state: emits a copy of it, as one packet of at most 1 MiB, or nothing when it
     * is empty. The state is not changed. */
    int32_t (*save)(void *state, sapwood_filter_out_t *out);
    /* Of a composable state: merges the saved state of another instance into this one. */
    int32_t (*merge)(void *state, const sapwood_filter_value_t *values, uint32_t count,
                     sapwood_filter_out_t *out);
    /* Of a synchronisation rule: whether an incomplete wave is forwarded. *wait_ns is
     * SAPWOOD_FILTER_GO, SAPWOOD_FILTER_WAIT for the next packet, or the nanoseconds after which
     * the rule is called again if no packet arrives before. A complete wave is forwarded without
     * the rule. It is offloaded to a thread, one at a time, as transform is. NULL for a filter. */
    int32_t (*decide)(void *state, const sapwood_filter_arrivals_t *arrivals, int64_t *wait_ns,
                      sapwood_filter_out_t *out);
} sapwood_filter_t;

/* The contents of a file. */
typedef struct sapwood_filter_library {
    uint32_t version;      /* SAPWOOD_FILTER_VERSION */
    uint32_t filter_bytes; /* sizeof(sapwood_filter_t) */
    uint32_t filter_count;
    const sapwood_filter_t *filters;
} sapwood_filter_library_t;

/* The one function that a file of filters exports. The returned struct stays valid. */
SAPWOOD_FILTER_EXPORT const sapwood_filter_library_t *sapwood_filter_v1(void);

#ifdef __cplusplus
}
#endif

#endif
