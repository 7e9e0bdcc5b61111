/*
 * Values on their way between a tool's arguments and sapwood.h: the C and the C++ layer share this.
 *
 * What a format means is sapwood_format_parse's to know, and how values are encoded the library's;
 * here is what C does to each type in a variable argument list, and whose memory it is.
 */
#ifndef MRNET_VALUES_H
#define MRNET_VALUES_H

#include <sapwood.h>
#include <stdarg.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mrn_value {
    uint8_t code; /* a sapwood_type_t plus a sapwood_shape_t */
    uint8_t owns; /* whether `u.p` is this value's to free */
    uint64_t count;
    union {
        int8_t c;
        uint8_t uc;
        int16_t hd;
        uint16_t uhd;
        int32_t d;
        uint32_t ud;
        int64_t ld;
        uint64_t uld;
        float f;
        double lf;
        const void *p;
    } u;
};

/* How many values need no memory of their own. */
enum { MRN_FEW = 2 };
/* Stays where it was made: `values` may point into it. */
struct mrn_values {
    size_t count;
    struct mrn_value *values;
    struct mrn_value few[MRN_FEW];
};

/* Whether a format can be read; `error` says what is wrong. */
int mrn_check(const char *format, sapwood_error_t *error);

/* Takes values from an argument list. Strings are copied, arrays are not. */
int mrn_take(struct mrn_values *to, const char *format, va_list arguments, sapwood_error_t *error);
/* The same from pointers to values; of an array to its first element and to its number. */
int mrn_take_pointers(struct mrn_values *to, const char *format, const void **pointers,
                      sapwood_error_t *error);
/* Lends the values of a packet. */
int mrn_read(struct mrn_values *to, const sapwood_packet_t *packet, sapwood_error_t *error);

enum { MRN_POINTERS_MAX = 2 * SAPWOOD_DIRECTIVES_MAX };
struct mrn_pointers {
    size_t count;
    const void *pointers[MRN_POINTERS_MAX];
    uint32_t counts[SAPWOOD_DIRECTIVES_MAX];
};
/* What the functions of sapwood.h that end in _values take. */
void mrn_point(const struct mrn_values *from, struct mrn_pointers *to);

/*
 * Gives values to where the arguments point, if the format fits: arrays and strings as copies for
 * the caller to free. With `is_lenient` numbers of other types are converted, and there may be
 * fewer directives than values.
 */
int mrn_unpack(const struct mrn_values *from, const char *format, va_list places, int is_lenient,
               sapwood_error_t *error);

/* Frees what the values own; with `with_payload` also arrays that were given by pointer. */
void mrn_free(struct mrn_values *values, int with_payload);

/* Bytes of one element of an array; of a string array that is a pointer. */
size_t mrn_element_bytes(uint8_t code);
/* How many bytes of payload the values have. */
uint64_t mrn_payload_bytes(const struct mrn_values *values);
/* Whether the values are the same. */
int mrn_equal(const struct mrn_values *one, const struct mrn_values *other);

#ifdef __cplusplus
}
#endif

#endif
