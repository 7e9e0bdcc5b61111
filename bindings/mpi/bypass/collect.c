/* Which calls are taken, and their way through the ring of instances; see collect.h. */
#define _GNU_SOURCE
#include "collect.h"

#include <stdlib.h>
#include <string.h>

#include "fold.h"
#include "life.h"
#include "note.h"

static bool leave_to_mpi(enum bypass_cause cause)
{
    bypass_count(&bypass_account.left[cause], 1);
    return false;
}

/* A number that two ranks with different arguments hardly share. */
static uint64_t signature_of(const struct bypass_call *call, uint32_t bytes, int operation)
{
    uint64_t word = (uint64_t)bytes << 32 | (uint64_t)(uint32_t)call->root << 8 | (uint64_t)call->kind << 6 |
                    (uint64_t)(operation & 63);
    return word * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

static struct bypass_part part_of(const struct bypass_work *work, uint64_t instance, uint32_t number,
                                  uint32_t elements_each, uint32_t elements_all)
{
    uint32_t begin = number * elements_each;
    uint32_t elements = elements_all - begin < elements_each ? elements_all - begin : elements_each;
    uint32_t extent = work->type != NULL ? work->type->extent : 1;
    const struct bypass_segment *s = &work->c->segment;
    const struct bypass_call *call = work->call;
    size_t offset = (size_t)begin * extent;
    return (struct bypass_part){
        .slot = (uint32_t)(instance % s->ring),
        .generation = (uint32_t)(instance / s->ring) + 1,
        .elements = elements,
        .bytes = elements * extent,
        .source = (const unsigned char *)call->source + (call->source != NULL ? offset : 0),
        .target = call->target == NULL ? NULL : (unsigned char *)call->target + offset,
        .first = number == 0,
    };
}

static void retire(const struct bypass_work *work, const struct bypass_part *part)
{
    struct bypass_slot *slot = &work->c->segment.slots[part->slot];
    bypass_tell(&slot->retired, part->generation, &slot->retired_sleepers);
}

/* Waits until the instance that used the slot before is over. */
static void wait_for_slot(const struct bypass_work *work, const struct bypass_part *part)
{
    struct bypass_slot *slot = &work->c->segment.slots[part->slot];
    if (atomic_load_explicit(&slot->retired, memory_order_acquire) == part->generation - 1)
        return;
    bypass_count(&bypass_account.held, 1);
    bypass_wait(&slot->retired, part->generation - 1, &slot->retired_sleepers, &work->c->patience, NULL, NULL);
}

struct redo {
    const struct bypass_work *work;
    const struct bypass_part *part;
};

static bool redo_after_a_death(void *argument)
{
    const struct redo *redo = argument;
    return bypass_redo(redo->work, redo->part);
}

/* Waits for the result of a part, takes it, and frees the slot. */
static void take(const struct bypass_work *work, const struct bypass_part *part)
{
    const struct bypass_segment *s = &work->c->segment;
    struct bypass_slot *slot = &s->slots[part->slot];
    struct redo redo = {work, part};
    bypass_count(&bypass_account.waits, 1);
    bool is_there = bypass_wait(&slot->done, part->generation, &slot->done_sleepers, &work->c->patience,
                                work->call->kind == BYPASS_REDUCE ? redo_after_a_death : NULL, &redo);
    if (is_there && part->bytes > 0)
        memcpy(part->target, bypass_result(s, part->slot, 0, part->bytes), part->bytes);
    if (work->is_noted && work->to_all && part->first)
        bypass_note_own(work, SAPWOOD_HOP_RECEIVED_DOWN, bypass_now_ns());
}

/* The rank is through with the instance; the last to be so retires it. */
static void leave(const struct bypass_work *work, const struct bypass_part *part, bool *mismatch)
{
    struct bypass_slot *slot = &work->c->segment.slots[part->slot];
    if (atomic_load_explicit(&slot->mismatch, memory_order_relaxed) != 0)
        *mismatch = true;
    if (work->to_all) {
        if (atomic_fetch_add_explicit(&slot->left, 1, memory_order_acq_rel) + 1 != work->c->size)
            return;
        atomic_store_explicit(&slot->left, 0, memory_order_relaxed);
    }
    atomic_store_explicit(&slot->mismatch, 0, memory_order_relaxed);
    retire(work, part);
}

/* Brings a part in. True if the rank need not come back for it. */
static bool begin(const struct bypass_work *work, const struct bypass_part *part, bool *mismatch)
{
    wait_for_slot(work, part);
    if (bypass_contribute(work, part)) {
        leave(work, part, mismatch);
        return true;
    }
    return part->target == NULL && !work->to_all;
}

/* A rank that gets results takes those of the oldest parts when the ring is full. */
static bool go_through(const struct bypass_work *work, uint32_t elements)
{
    struct bypass_communicator *c = work->c;
    uint32_t each = c->segment.chunk_bytes / (work->type != NULL ? work->type->extent : 1);
    uint32_t parts = elements == 0 ? 1 : (elements + each - 1) / each;
    uint32_t ring = c->segment.ring, begun = 0, ended = 0;
    uint64_t first = c->next;
    bool mismatch = false;
    bool pending[BYPASS_RING_LIMIT]; /* of the part number modulo the ring, once begun */
    c->next += parts;
    while (ended < parts) {
        bool is_end = begun == parts || begun - ended == ring;
        uint32_t number = is_end ? ended++ : begun++;
        struct bypass_part part = part_of(work, first + number, number, each, elements);
        if (!is_end) {
            pending[number % ring] = !begin(work, &part, &mismatch);
        } else if (pending[number % ring]) {
            take(work, &part);
            leave(work, &part, &mismatch);
        }
    }
    return !mismatch;
}

/* Whether MPI would refuse what only this rank can see. */
static bool has_bad_buffers(const struct bypass_call *call, bool is_root)
{
    if (call->kind == BYPASS_REDUCE && !is_root)
        return call->source == MPI_IN_PLACE;
    if (call->kind == BYPASS_REDUCE || call->kind == BYPASS_ALLREDUCE)
        return call->target == MPI_IN_PLACE || call->source == call->target;
    return false;
}

static int raise_error(MPI_Comm comm, int code)
{
    bypass_calls.Comm_call_errhandler(comm, code);
    return code;
}

/* The other ranks need a contribution of a rank with bad buffers too: nothing, with a
 * signature that no other rank has. */
static int stand_in(struct bypass_work *work, struct bypass_call *call, uint32_t elements)
{
    size_t bytes = (size_t)elements * work->type->extent;
    unsigned char *nothing = calloc(1, bytes);
    if (nothing == NULL)
        abort();
    call->source = nothing;
    call->target = work->place == 0 || work->to_all ? nothing : NULL;
    work->signature = 0;
    go_through(work, elements);
    free(nothing);
    return raise_error(call->comm, MPI_ERR_BUFFER);
}

/* Goes through with a call that has begun; what it returns. */
static int carry_out(struct bypass_work *work, struct bypass_call *call, uint32_t elements)
{
    if (has_bad_buffers(call, work->place == 0))
        return stand_in(work, call, elements);
    if (call->kind == BYPASS_REDUCE && work->place != 0)
        call->target = NULL;
    if (call->source == MPI_IN_PLACE)
        call->source = call->target;
    if (call->target == NULL)
        bypass_progress_sometimes(work->arrived_ns);
    if (go_through(work, elements))
        return MPI_SUCCESS;
    bypass_count(&bypass_account.mismatches, 1);
    return raise_error(call->comm, MPI_ERR_TRUNCATE);
}

static int take_over(struct bypass_communicator *c, const struct bypass_call *asked, const struct bypass_type *type,
                     int operation, uint32_t bytes)
{
    struct bypass_call call = *asked;
    uint32_t root = (uint32_t)call.root;
    struct bypass_work work = {
        .c = c,
        .call = &call,
        .type = type,
        .root = root,
        .place = (c->rank + c->size - root) % c->size,
        .signature = signature_of(&call, bytes, operation),
        .arrived_ns = bypass_now_ns(),
        .to_all = call.kind != BYPASS_REDUCE,
        .is_noted = bypass_hops_are_noted(),
        .instance = (uint32_t)c->next,
    };
    uint32_t elements = type != NULL ? bytes / type->extent : bytes;
    bypass_count(&bypass_account.taken[call.kind], 1);
    atomic_store_explicit(&c->segment.members[c->rank].calls, c->next + 1, memory_order_relaxed);
    bypass_note_own(&work, SAPWOOD_HOP_ENTERED, work.arrived_ns);
    int outcome = carry_out(&work, &call, elements);
    if (work.is_noted)
        bypass_note_own(&work, SAPWOOD_HOP_EXIT, bypass_now_ns());
    return outcome;
}

/* The predefined type of a reduction and the number of its operation; false with the
 * cause if the library is to do it. */
static bool is_predefined(const struct bypass_call *call, const struct bypass_type **type, int *operation,
                          enum bypass_cause *cause)
{
    *type = bypass_type_of(call->type);
    *operation = bypass_operation_of(call->operation);
    *cause = *type == NULL ? BYPASS_TYPE : BYPASS_OPERATION;
    return *type != NULL && *operation >= 0 && ((*type)->operations >> *operation & 1) != 0;
}

bool bypass_collect(const struct bypass_call *call, int *outcome)
{
    const struct bypass_type *type = NULL;
    enum bypass_cause cause;
    int operation = 0;
    uint64_t bytes = 0;
    if (!bypass_is_active())
        return leave_to_mpi(BYPASS_NOT_ANNOUNCED);
    if ((bypass_settings.kinds >> call->kind & 1) == 0)
        return leave_to_mpi(BYPASS_KIND_OFF);
    if (call->kind != BYPASS_BARRIER) {
        if (!is_predefined(call, &type, &operation, &cause))
            return leave_to_mpi(cause);
        if (call->count <= 0)
            return leave_to_mpi(BYPASS_EMPTY);
        bytes = (uint64_t)call->count * type->extent;
        if (bytes > bypass_settings.bytes_max || (uint64_t)call->count > UINT32_MAX)
            return leave_to_mpi(BYPASS_LARGE);
    }
    struct bypass_communicator *c = bypass_communicator_of(call->comm);
    if (c == NULL)
        return leave_to_mpi(BYPASS_ARGUMENT);
    if (!c->open)
        return leave_to_mpi(c->cause);
    if (call->root < 0 || (uint32_t)call->root >= c->size)
        return leave_to_mpi(BYPASS_ARGUMENT);
    *outcome = take_over(c, call, type, operation, (uint32_t)bytes);
    return true;
}
