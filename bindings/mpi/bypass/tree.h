/* The binomial tree of one instance. Places are ranks counted from the root, which
 * is place 0; a place's parent lacks its lowest bit, and its children add a lower one:
 *
 *   0 ── 1            result(p) = operand(p), then for each child in ascending
 *   ├── 2 ── 3                    order  result(p) = result(child) op result(p)
 *   └── 4 ── 5
 *       └── 6 ── 7
 *
 * That order is a promise: results are bitwise equal in every run with the same
 * library and number of ranks, whatever order the ranks come in.
 */
#ifndef SAPWOOD_BYPASS_TREE_H
#define SAPWOOD_BYPASS_TREE_H

#include <stdbool.h>
#include <stdint.h>

static inline uint32_t bypass_parent(uint32_t place)
{
    return place & (place - 1);
}

/* The child that adds `bit`, for bits 1, 2, 4, ...; false after the last child. */
static inline bool bypass_has_child(uint32_t place, uint32_t bit, uint32_t size)
{
    return bit < size && (place & bit) == 0 && (place | bit) < size;
}

static inline uint32_t bypass_children(uint32_t place, uint32_t size)
{
    uint32_t children = 0;
    for (uint32_t bit = 1; bypass_has_child(place, bit, size); bit <<= 1)
        children++;
    return children;
}

#endif
