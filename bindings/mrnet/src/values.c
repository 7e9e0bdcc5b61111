/*
 * Values on their way between a tool's arguments and sapwood.h; values.h says the rules.
 */
#include "values.h"

#include <stdlib.h>
#include <string.h>

/* va_list may be an array type, which a function cannot take by reference; in a struct it can. */
struct list {
    va_list arguments;
};

static int is_array(uint8_t code)
{
    return (code & 0xf0) != SAPWOOD_SHAPE_SCALAR;
}

static int is_large(uint8_t code)
{
    return (code & 0xf0) == SAPWOOD_SHAPE_LARGE_ARRAY;
}

static int type_of(uint8_t code)
{
    return code & 0x0f;
}

static int fail(sapwood_error_t *error, int code, const char *text)
{
    if (error != NULL) {
        error->code = code;
        strncpy(error->text, text, sizeof error->text - 1);
        error->text[sizeof error->text - 1] = '\0';
    }
    return code;
}

/* A packet without a format is an empty one. */
static const char *or_empty(const char *format)
{
    return format == NULL ? "" : format;
}

int mrn_check(const char *format, sapwood_error_t *error)
{
    uint8_t codes[SAPWOOD_DIRECTIVES_MAX];
    size_t count;
    return sapwood_format_parse(or_empty(format), codes, sizeof codes, &count, error);
}

/* A tool uses few formats again and again: the last short ones of each length are kept. */
enum { KEPT_FORMATS = 8, KEPT_BYTES = 16 };
struct kept_format {
    char text[KEPT_BYTES];
    uint8_t codes[KEPT_BYTES];
    size_t count;
};

static int parse(const char *given, uint8_t *codes, size_t *count, sapwood_error_t *error)
{
    static _Thread_local struct kept_format kept[KEPT_FORMATS];
    const char *format = or_empty(given);
    size_t length = strlen(format);
    struct kept_format *same = &kept[length % KEPT_FORMATS];
    int code;
    if (length < KEPT_BYTES && same->count > 0 && memcmp(same->text, format, length + 1) == 0) {
        memcpy(codes, same->codes, same->count);
        *count = same->count;
        return SAPWOOD_OK;
    }
    code = sapwood_format_parse(format, codes, SAPWOOD_DIRECTIVES_MAX, count, error);
    if (code == SAPWOOD_OK && length < KEPT_BYTES && *count <= KEPT_BYTES) {
        memcpy(same->text, format, length + 1);
        memcpy(same->codes, codes, *count);
        same->count = *count;
    }
    return code;
}

/* Makes room for the values of a format. */
static int prepare(struct mrn_values *to, const char *format, sapwood_error_t *error)
{
    uint8_t codes[SAPWOOD_DIRECTIVES_MAX];
    size_t count;
    int code = parse(format, codes, &count, error);
    to->count = 0;
    to->values = NULL;
    if (code != SAPWOOD_OK)
        return code;
    if (count == 0)
        return SAPWOOD_OK;
    if (count <= MRN_FEW) {
        memset(to->few, 0, sizeof to->few);
        to->values = to->few;
    } else {
        to->values = calloc(count, sizeof *to->values);
    }
    if (to->values == NULL)
        return fail(error, SAPWOOD_ERROR_SYSTEM, "no memory for the values of a packet");
    to->count = count;
    for (size_t i = 0; i < count; i++)
        to->values[i].code = codes[i];
    return SAPWOOD_OK;
}

static void copy_string(struct mrn_value *value, const char *text)
{
    value->u.p = strdup(text == NULL ? "" : text);
    value->owns = 1;
}

/* Whatever is shorter than int comes as int, and a float as a double. */
static void take_one(struct mrn_value *value, struct list *list)
{
    if (is_array(value->code)) {
        value->u.p = va_arg(list->arguments, const void *);
        value->count = is_large(value->code) ? va_arg(list->arguments, uint64_t)
                                             : va_arg(list->arguments, uint32_t);
        return;
    }
    value->count = 1;
    switch (type_of(value->code)) {
    case SAPWOOD_TYPE_INT8: value->u.c = (int8_t)va_arg(list->arguments, int); break;
    case SAPWOOD_TYPE_UINT8: value->u.uc = (uint8_t)va_arg(list->arguments, int); break;
    case SAPWOOD_TYPE_INT16: value->u.hd = (int16_t)va_arg(list->arguments, int); break;
    case SAPWOOD_TYPE_UINT16: value->u.uhd = (uint16_t)va_arg(list->arguments, int); break;
    case SAPWOOD_TYPE_INT32: value->u.d = va_arg(list->arguments, int32_t); break;
    case SAPWOOD_TYPE_UINT32: value->u.ud = va_arg(list->arguments, uint32_t); break;
    case SAPWOOD_TYPE_INT64: value->u.ld = va_arg(list->arguments, int64_t); break;
    case SAPWOOD_TYPE_UINT64: value->u.uld = va_arg(list->arguments, uint64_t); break;
    case SAPWOOD_TYPE_FLOAT: value->u.f = (float)va_arg(list->arguments, double); break;
    case SAPWOOD_TYPE_DOUBLE: value->u.lf = va_arg(list->arguments, double); break;
    default: copy_string(value, va_arg(list->arguments, const char *)); break;
    }
}

int mrn_take(struct mrn_values *to, const char *format, va_list arguments, sapwood_error_t *error)
{
    struct list list;
    int code = prepare(to, format, error);
    if (code != SAPWOOD_OK)
        return code;
    va_copy(list.arguments, arguments);
    for (size_t i = 0; i < to->count; i++)
        take_one(&to->values[i], &list);
    va_end(list.arguments);
    return SAPWOOD_OK;
}

static size_t scalar_bytes(uint8_t code)
{
    switch (type_of(code)) {
    case SAPWOOD_TYPE_INT8:
    case SAPWOOD_TYPE_UINT8: return 1;
    case SAPWOOD_TYPE_INT16:
    case SAPWOOD_TYPE_UINT16: return 2;
    case SAPWOOD_TYPE_INT32:
    case SAPWOOD_TYPE_UINT32:
    case SAPWOOD_TYPE_FLOAT: return 4;
    default: return 8;
    }
}

size_t mrn_element_bytes(uint8_t code)
{
    return scalar_bytes(code);
}

int mrn_take_pointers(struct mrn_values *to, const char *format, const void **pointers,
                      sapwood_error_t *error)
{
    int code = prepare(to, format, error);
    if (code != SAPWOOD_OK)
        return code;
    if (pointers == NULL && to->count > 0) {
        mrn_free(to, 0);
        return fail(error, SAPWOOD_ERROR_USAGE, "values: are NULL");
    }
    for (size_t i = 0; i < to->count; i++) {
        struct mrn_value *value = &to->values[i];
        const void *pointer = *pointers++;
        value->count = 1;
        if (is_array(value->code)) {
            const void *count = *pointers++;
            value->u.p = pointer;
            if (count != NULL)
                value->count = is_large(value->code) ? *(const uint64_t *)count
                                                     : *(const uint32_t *)count;
        } else if (type_of(value->code) == SAPWOOD_TYPE_STRING) {
            copy_string(value, pointer);
        } else if (pointer != NULL) {
            memcpy(&value->u, pointer, scalar_bytes(value->code));
        }
    }
    return SAPWOOD_OK;
}

int mrn_read(struct mrn_values *to, const sapwood_packet_t *packet, sapwood_error_t *error)
{
    uint64_t counts[SAPWOOD_DIRECTIVES_MAX];
    void *places[MRN_POINTERS_MAX];
    size_t used = 0;
    const char *format = sapwood_packet_format(packet);
    int code = prepare(to, format, error);
    if (code != SAPWOOD_OK)
        return code;
    for (size_t i = 0; i < to->count; i++) {
        counts[i] = 0;
        places[used++] = &to->values[i].u;
        if (is_array(to->values[i].code))
            places[used++] = &counts[i];
    }
    code = sapwood_packet_read_values(packet, format, places, used, error);
    for (size_t i = 0; i < to->count; i++) {
        uint32_t narrow;
        memcpy(&narrow, &counts[i], sizeof narrow);
        to->values[i].count = is_large(to->values[i].code) ? counts[i] : narrow;
        if (!is_array(to->values[i].code))
            to->values[i].count = 1;
    }
    if (code != SAPWOOD_OK)
        mrn_free(to, 0);
    return code;
}

void mrn_point(const struct mrn_values *from, struct mrn_pointers *to)
{
    to->count = 0;
    for (size_t i = 0; i < from->count; i++) {
        const struct mrn_value *value = &from->values[i];
        if (is_array(value->code)) {
            to->counts[i] = (uint32_t)value->count;
            to->pointers[to->count++] = value->u.p;
            to->pointers[to->count++] =
                is_large(value->code) ? (const void *)&value->count : (const void *)&to->counts[i];
        } else if (type_of(value->code) == SAPWOOD_TYPE_STRING) {
            to->pointers[to->count++] = value->u.p;
        } else {
            to->pointers[to->count++] = &value->u;
        }
    }
}

/* A number as a double, for averages that are asked for in the type that was sent. */
static double number(const void *at, int type)
{
    switch (type) {
    case SAPWOOD_TYPE_INT8: return *(const int8_t *)at;
    case SAPWOOD_TYPE_UINT8: return *(const uint8_t *)at;
    case SAPWOOD_TYPE_INT16: return *(const int16_t *)at;
    case SAPWOOD_TYPE_UINT16: return *(const uint16_t *)at;
    case SAPWOOD_TYPE_INT32: return *(const int32_t *)at;
    case SAPWOOD_TYPE_UINT32: return *(const uint32_t *)at;
    case SAPWOOD_TYPE_INT64: return (double)*(const int64_t *)at;
    case SAPWOOD_TYPE_UINT64: return (double)*(const uint64_t *)at;
    case SAPWOOD_TYPE_FLOAT: return *(const float *)at;
    default: return *(const double *)at;
    }
}

static void put_number(void *at, int type, double value)
{
    switch (type) {
    case SAPWOOD_TYPE_INT8: *(int8_t *)at = (int8_t)value; break;
    case SAPWOOD_TYPE_UINT8: *(uint8_t *)at = (uint8_t)value; break;
    case SAPWOOD_TYPE_INT16: *(int16_t *)at = (int16_t)value; break;
    case SAPWOOD_TYPE_UINT16: *(uint16_t *)at = (uint16_t)value; break;
    case SAPWOOD_TYPE_INT32: *(int32_t *)at = (int32_t)value; break;
    case SAPWOOD_TYPE_UINT32: *(uint32_t *)at = (uint32_t)value; break;
    case SAPWOOD_TYPE_INT64: *(int64_t *)at = (int64_t)value; break;
    case SAPWOOD_TYPE_UINT64: *(uint64_t *)at = (uint64_t)value; break;
    case SAPWOOD_TYPE_FLOAT: *(float *)at = (float)value; break;
    default: *(double *)at = value; break;
    }
}

static void *copy_array(const struct mrn_value *value, int type)
{
    size_t to_bytes = scalar_bytes((uint8_t)type);
    size_t from_bytes = scalar_bytes(value->code);
    size_t count = (size_t)value->count;
    char *copy = calloc(count > 0 ? count : 1, to_bytes);
    if (copy == NULL)
        return NULL;
    if (type == SAPWOOD_TYPE_STRING) {
        const char *const *texts = value->u.p;
        for (size_t i = 0; i < count; i++)
            ((char **)(void *)copy)[i] = strdup(texts[i]);
    } else if (type == type_of(value->code)) {
        if (count > 0)
            memcpy(copy, value->u.p, count * to_bytes);
    } else {
        for (size_t i = 0; i < count; i++) {
            const char *from = (const char *)value->u.p + i * from_bytes;
            put_number(copy + i * to_bytes, type, number(from, type_of(value->code)));
        }
    }
    return copy;
}

static int give_one(const struct mrn_value *value, uint8_t code, struct list *list,
                    sapwood_error_t *error)
{
    void *place = va_arg(list->arguments, void *);
    if (is_array(code)) {
        void *count = va_arg(list->arguments, void *);
        void *copy = copy_array(value, type_of(code));
        if (copy == NULL)
            return fail(error, SAPWOOD_ERROR_SYSTEM, "no memory for the copy of an array");
        *(void **)place = copy;
        if (is_large(code))
            *(uint64_t *)count = value->count;
        else
            *(uint32_t *)count = (uint32_t)value->count;
    } else if (type_of(code) == SAPWOOD_TYPE_STRING) {
        *(char **)place = strdup(value->u.p);
    } else if (type_of(code) == type_of(value->code)) {
        memcpy(place, &value->u, scalar_bytes(code));
    } else {
        put_number(place, type_of(code), number(&value->u, type_of(value->code)));
    }
    return SAPWOOD_OK;
}

/* Whether a value can be asked for by this directive. */
static int fits(uint8_t held, uint8_t asked, int is_lenient)
{
    int both_numbers = type_of(held) != SAPWOOD_TYPE_STRING && type_of(asked) != SAPWOOD_TYPE_STRING;
    if (is_array(held) != is_array(asked))
        return 0;
    return type_of(held) == type_of(asked) || (is_lenient && both_numbers);
}

int mrn_unpack(const struct mrn_values *from, const char *format, va_list places, int is_lenient,
               sapwood_error_t *error)
{
    uint8_t codes[SAPWOOD_DIRECTIVES_MAX];
    size_t count;
    struct list list;
    int code = parse(format, codes, &count, error);
    if (code != SAPWOOD_OK)
        return code;
    if (count > from->count || (count < from->count && !is_lenient))
        return fail(error, SAPWOOD_ERROR_FORMAT, "the packet has another number of values");
    for (size_t i = 0; i < count; i++)
        if (!fits(from->values[i].code, codes[i], is_lenient))
            return fail(error, SAPWOOD_ERROR_FORMAT, "the packet has values of other types");
    va_copy(list.arguments, places);
    for (size_t i = 0; i < count && code == SAPWOOD_OK; i++)
        code = give_one(&from->values[i], codes[i], &list, error);
    va_end(list.arguments);
    return code;
}

void mrn_free(struct mrn_values *values, int with_payload)
{
    for (size_t i = 0; i < values->count; i++) {
        struct mrn_value *value = &values->values[i];
        if (value->owns || (with_payload && is_array(value->code)))
            free((void *)(uintptr_t)value->u.p);
    }
    if (values->values != values->few)
        free(values->values);
    values->values = NULL;
    values->count = 0;
}

uint64_t mrn_payload_bytes(const struct mrn_values *values)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < values->count; i++) {
        const struct mrn_value *value = &values->values[i];
        if (type_of(value->code) != SAPWOOD_TYPE_STRING) {
            bytes += value->count * scalar_bytes(value->code);
            continue;
        }
        for (uint64_t at = 0; at < value->count; at++)
            bytes += strlen(is_array(value->code) ? ((const char *const *)value->u.p)[at]
                                                  : (const char *)value->u.p);
    }
    return bytes;
}

static int equal_one(const struct mrn_value *one, const struct mrn_value *other)
{
    if (one->code != other->code || one->count != other->count)
        return 0;
    if (type_of(one->code) == SAPWOOD_TYPE_STRING) {
        if (!is_array(one->code))
            return strcmp(one->u.p, other->u.p) == 0;
        for (uint64_t at = 0; at < one->count; at++)
            if (strcmp(((const char *const *)one->u.p)[at], ((const char *const *)other->u.p)[at]))
                return 0;
        return 1;
    }
    if (is_array(one->code))
        return one->count == 0 ||
               memcmp(one->u.p, other->u.p, one->count * scalar_bytes(one->code)) == 0;
    return memcmp(&one->u, &other->u, scalar_bytes(one->code)) == 0;
}

int mrn_equal(const struct mrn_values *one, const struct mrn_values *other)
{
    if (one->count != other->count)
        return 0;
    for (size_t i = 0; i < one->count; i++)
        if (!equal_one(&one->values[i], &other->values[i]))
            return 0;
    return 1;
}
