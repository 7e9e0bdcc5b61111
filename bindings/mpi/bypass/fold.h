/* One contribution to one instance, and the folding that it completes. */
#ifndef SAPWOOD_BYPASS_FOLD_H
#define SAPWOOD_BYPASS_FOLD_H

#include "collect.h"
#include "communicator.h"
#include "types.h"

/* What does not change between the chunks of a call. */
struct bypass_work {
    struct bypass_communicator *c;
    const struct bypass_call *call;
    const struct bypass_type *type;
    uint32_t root, place;
    uint64_t signature;   /* equal at all ranks of a correct program */
    uint64_t arrived_ns;
    bool to_all;          /* every rank reads the result */
    bool is_noted;        /* its hops are; see note.h */
    uint32_t instance;    /* the low bits of the first one's number */
};

/* A part of the operand, which one instance holds. */
struct bypass_part {
    uint32_t slot, generation;
    uint32_t elements, bytes;
    const unsigned char *source;
    unsigned char *target;   /* NULL where this rank gets no result */
    bool first;              /* of its call */
};

/* Brings the operand into the tree and folds what it completes. True if that was
 * the whole tree and the result is in the part's target. */
bool bypass_contribute(const struct bypass_work *work, const struct bypass_part *part);

/* Computes the result at the root from the operands alone, in the same order, after
 * the rank that should have done so died. False while operands are missing. */
bool bypass_redo(const struct bypass_work *work, const struct bypass_part *part);

#endif
