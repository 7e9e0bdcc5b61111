/*
 * The functions of sapwood.h that end in `...`: they walk the argument list as the format string says
 * and call their `_values` variants with pointers. What a format string means is sapwood_format_parse's
 * to know; here is only what C does to each type on its way through `...`.
 *
 * Built as sapwood_varargs_NAME, which the exported sapwood_NAME jumps to (varargs.rs says why). Tests
 * build it under the exported names, to run it under a sanitizer.
 */
#include <sapwood.h>

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#ifdef SAPWOOD_VARARGS_EXPORTED
#define VARARGS(name) sapwood_##name
#else
#define VARARGS(name) sapwood_varargs_##name
#endif

/* An array takes two arguments. */
enum { ARGUMENTS_MAX = 2 * SAPWOOD_DIRECTIVES_MAX };

union slot {
    int8_t int8;
    uint8_t uint8;
    int16_t int16;
    uint16_t uint16;
    int32_t int32;
    uint32_t uint32;
    int64_t int64;
    uint64_t uint64;
    float single;
    double real;
};

struct arguments {
    size_t count;
    const void *pointers[ARGUMENTS_MAX];
    union slot slots[ARGUMENTS_MAX];
};

/* va_list may be an array type, which a function cannot take by reference; inside a struct it can. */
struct list {
    va_list values;
};

static void take_array(struct arguments *arguments, int is_large, struct list *list)
{
    union slot *slot = &arguments->slots[arguments->count];
    arguments->pointers[arguments->count++] = va_arg(list->values, const void *);
    if (is_large)
        slot->uint64 = va_arg(list->values, uint64_t);
    else
        slot->uint32 = va_arg(list->values, uint32_t);
    arguments->pointers[arguments->count++] = slot;
}

/* Whatever is shorter than int comes as int, and a float as a double. */
static void take_scalar(struct arguments *arguments, int type, struct list *list)
{
    union slot *slot = &arguments->slots[arguments->count];
    const void *pointer = slot;
    switch (type) {
    case SAPWOOD_TYPE_INT8: slot->int8 = (int8_t)va_arg(list->values, int); break;
    case SAPWOOD_TYPE_UINT8: slot->uint8 = (uint8_t)va_arg(list->values, int); break;
    case SAPWOOD_TYPE_INT16: slot->int16 = (int16_t)va_arg(list->values, int); break;
    case SAPWOOD_TYPE_UINT16: slot->uint16 = (uint16_t)va_arg(list->values, int); break;
    case SAPWOOD_TYPE_INT32: slot->int32 = va_arg(list->values, int32_t); break;
    case SAPWOOD_TYPE_UINT32: slot->uint32 = va_arg(list->values, uint32_t); break;
    case SAPWOOD_TYPE_INT64: slot->int64 = va_arg(list->values, int64_t); break;
    case SAPWOOD_TYPE_UINT64: slot->uint64 = va_arg(list->values, uint64_t); break;
    case SAPWOOD_TYPE_FLOAT: slot->single = (float)va_arg(list->values, double); break;
    case SAPWOOD_TYPE_DOUBLE: slot->real = va_arg(list->values, double); break;
    default: pointer = va_arg(list->values, const char *); break;
    }
    arguments->pointers[arguments->count++] = pointer;
}

/* Fills `arguments` with a pointer to each value. */
static int take_values(struct arguments *arguments, const char *format, struct list *list,
                       sapwood_error_t *error)
{
    uint8_t codes[SAPWOOD_DIRECTIVES_MAX];
    size_t count;
    int code = sapwood_format_parse(format, codes, sizeof codes, &count, error);
    arguments->count = 0;
    for (size_t i = 0; code == SAPWOOD_OK && i < count; i++) {
        int shape = codes[i] & 0xf0;
        if (shape == SAPWOOD_SHAPE_SCALAR)
            take_scalar(arguments, codes[i] & 0x0f, list);
        else
            take_array(arguments, shape == SAPWOOD_SHAPE_LARGE_ARRAY, list);
    }
    return code;
}

/* Declares `values`, with a pointer to each of the function's variable arguments, or returns the error.
 * A macro, since only the function itself can start its list. */
#define TAKE_VALUES(values)                                            \
    struct arguments values;                                           \
    do {                                                               \
        struct list list;                                              \
        va_start(list.values, format);                                 \
        int code = take_values(&values, format, &list, error);         \
        va_end(list.values);                                           \
        if (code != SAPWOOD_OK)                                        \
            return code;                                               \
    } while (0)

int VARARGS(stream_broadcast)(sapwood_stream_t *stream, int32_t tag, sapwood_error_t *error,
                              const char *format, ...)
{
    TAKE_VALUES(values);
    return sapwood_stream_broadcast_values(stream, tag, format, values.pointers, values.count,
                                           error);
}

int VARARGS(stream_send_to)(sapwood_stream_t *stream, uint32_t rank, int32_t tag,
                            sapwood_error_t *error, const char *format, ...)
{
    TAKE_VALUES(values);
    return sapwood_stream_send_to_values(stream, rank, tag, format, values.pointers, values.count,
                                         error);
}

int VARARGS(back_end_send)(sapwood_back_end_t *back_end, uint32_t stream, int32_t tag,
                           sapwood_error_t *error, const char *format, ...)
{
    TAKE_VALUES(values);
    return sapwood_back_end_send_values(back_end, stream, tag, format, values.pointers,
                                        values.count, error);
}

int VARARGS(back_end_send_in_wave)(sapwood_back_end_t *back_end, uint32_t stream, uint64_t wave,
                                   int32_t tag, sapwood_error_t *error, const char *format, ...)
{
    TAKE_VALUES(values);
    return sapwood_back_end_send_in_wave_values(back_end, stream, wave, tag, format,
                                                values.pointers, values.count, error);
}

int VARARGS(stream_try_broadcast)(sapwood_stream_t *stream, int32_t tag, sapwood_error_t *error,
                                  const char *format, ...)
{
    TAKE_VALUES(values);
    return sapwood_stream_try_broadcast_values(stream, tag, format, values.pointers, values.count, error);
}

int VARARGS(stream_ask)(sapwood_stream_t *stream, sapwood_answer_t **answer, int32_t timeout_ms,
                        int32_t tag, sapwood_error_t *error, const char *format, ...)
{
    TAKE_VALUES(values);
    return sapwood_stream_ask_values(stream, answer, timeout_ms, tag, format, values.pointers, values.count, error);
}

int VARARGS(stream_ask_async)(sapwood_stream_t *stream, sapwood_question_t **question, int32_t tag,
                              sapwood_error_t *error, const char *format, ...)
{
    TAKE_VALUES(values);
    return sapwood_stream_ask_async_values(stream, question, tag, format, values.pointers, values.count, error);
}

int VARARGS(back_end_reply)(sapwood_back_end_t *back_end, const sapwood_packet_t *packet,
                            bool *is_open, sapwood_error_t *error, const char *format, ...)
{
    TAKE_VALUES(values);
    return sapwood_back_end_reply_values(back_end, packet, is_open, format, values.pointers, values.count, error);
}

int VARARGS(back_end_try_send)(sapwood_back_end_t *back_end, uint32_t stream, int32_t tag,
                               sapwood_error_t *error, const char *format, ...)
{
    TAKE_VALUES(values);
    return sapwood_back_end_try_send_values(back_end, stream, tag, format, values.pointers, values.count, error);
}

int VARARGS(packet_read)(const sapwood_packet_t *packet, sapwood_error_t *error,
                         const char *format, ...)
{
    void *places[ARGUMENTS_MAX];
    uint8_t codes[SAPWOOD_DIRECTIVES_MAX];
    size_t count;
    size_t used = 0;
    int code = sapwood_format_parse(format, codes, sizeof codes, &count, error);
    if (code != SAPWOOD_OK)
        return code;
    va_list list;
    va_start(list, format);
    for (size_t i = 0; i < count; i++) {
        places[used++] = va_arg(list, void *);
        if ((codes[i] & 0xf0) != SAPWOOD_SHAPE_SCALAR)
            places[used++] = va_arg(list, void *);
    }
    va_end(list);
    return sapwood_packet_read_values(packet, format, places, used, error);
}
