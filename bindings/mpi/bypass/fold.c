/* Folding in the order of tree.h; see fold.h. Operands stay as they are until the slot
 * is used again, so that the result can be computed once more. */
#define _GNU_SOURCE
#include "fold.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "note.h"
#include "tree.h"

static unsigned char *result_of(const struct bypass_work *work, const struct bypass_part *part, uint32_t place)
{
    const struct bypass_segment *s = &work->c->segment;
    return bypass_children(place, s->size) == 0 ? bypass_operand(s, part->slot, place, part->bytes)
                                                : bypass_result(s, part->slot, place, part->bytes);
}

/* The rank in MPI_COMM_WORLD. */
static uint32_t rank_at(const struct bypass_work *work, uint32_t place)
{
    return (uint32_t)work->c->world_ranks[(place + work->root) % work->c->size];
}

/* Counts how a child came to its parent, by this time after the parent's call; 0 if it came before. */
static void count_lateness(const struct bypass_work *work, uint32_t place, uint32_t child_rank, uint64_t late_ns)
{
    struct bypass_lateness *entry = &bypass_lateness()[child_rank];
    if (late_ns == 0) {
        bypass_count(&entry->early, 1);
        return;
    }
    bypass_count(place == 0 || work->to_all ? &entry->expected : &entry->late, 1);
    bypass_count(&entry->late_ns, late_ns);
    uint64_t most = atomic_load_explicit(&entry->late_ns_max, memory_order_relaxed);
    while (late_ns > most && !atomic_compare_exchange_weak(&entry->late_ns_max, &most, late_ns))
        ;
}

static void count_edge(struct bypass_edge *edge, uint64_t late_ns)
{
    bypass_count(&edge->instances, 1);
    if (late_ns > 0) {
        bypass_count(&edge->late, 1);
        bypass_count(&edge->late_ns, late_ns);
    }
}

/* Counts for each child of this place how it came; at each edge that an instance came over it, and at one of them,
 * or at the place's own, that it was the last. */
static void count_children(const struct bypass_work *work, const struct bypass_part *part, uint32_t place)
{
    const struct bypass_segment *s = &work->c->segment;
    const struct bypass_edges *edges = bypass_edges();
    bool has_edges = edges->at != NULL;
    uint64_t arrived_ns = bypass_node_at(s, part->slot, place)->arrived_ns;
    uint32_t parent = rank_at(work, place);
    struct bypass_edge *last = has_edges ? bypass_edge_at(edges, parent, parent) : NULL;
    uint64_t last_ns = 0;
    if (has_edges)
        count_edge(last, 0);
    for (uint32_t bit = 1; bypass_has_child(place, bit, s->size); bit <<= 1) {
        uint64_t ready_ns = bypass_node_at(s, part->slot, place | bit)->ready_ns;
        uint64_t late_ns = ready_ns > arrived_ns ? ready_ns - arrived_ns : 0;
        uint32_t child = rank_at(work, place | bit);
        count_lateness(work, place, child, late_ns);
        if (!has_edges)
            continue;
        struct bypass_edge *edge = bypass_edge_at(edges, parent, child);
        count_edge(edge, late_ns);
        if (late_ns > last_ns) {
            last_ns = late_ns;
            last = edge;
        }
    }
    if (has_edges)
        bypass_count(&last->last, 1);
}

static void fold(const struct bypass_work *work, const struct bypass_part *part, uint32_t place, unsigned char *into)
{
    const struct bypass_segment *s = &work->c->segment;
    struct bypass_node *node = bypass_node_at(s, part->slot, place);
    if (part->bytes > 0)
        memcpy(into, bypass_operand(s, part->slot, place, part->bytes), part->bytes);
    for (uint32_t bit = 1; bypass_has_child(place, bit, s->size); bit <<= 1) {
        const struct bypass_node *child = bypass_node_at(s, part->slot, place | bit);
        if (child->signature != node->signature)
            atomic_store(&s->slots[part->slot].mismatch, 1);
        else if (part->bytes > 0)
            bypass_calls.Reduce_local(result_of(work, part, place | bit), into, (int)part->elements,
                                      work->call->type, work->call->operation);
    }
    if (part->first)
        count_children(work, part, place);
    bypass_count(&bypass_account.folds, 1);
}

/* The whole tree is folded, the result lies at place 0. */
static void publish(const struct bypass_work *work, const struct bypass_part *part)
{
    struct bypass_slot *slot = &work->c->segment.slots[part->slot];
    bypass_tell(&slot->done, part->generation, &slot->done_sleepers);
}

/* The place is folded, and its part goes up. */
static void note_sending(const struct bypass_work *work, const struct bypass_part *part, uint32_t place)
{
    if (!work->is_noted || !part->first)
        return;
    uint32_t rank = rank_at(work, place);
    bypass_hop_put(work, &(struct bypass_hop){.time_ns = bypass_now_ns(), .kind = SAPWOOD_HOP_SENT_UP,
                                              .flags = place == 0 ? SAPWOOD_HOP_ROOT : 0, .rank = rank, .child = rank});
}

/* The part of a place comes to its parent's. Before it is counted there, so that no later hop has an earlier time. */
static void note_arrival(const struct bypass_work *work, const struct bypass_part *part, uint32_t place)
{
    if (!work->is_noted || !part->first)
        return;
    uint32_t parent = bypass_parent(place);
    const struct bypass_node *above = bypass_node_at(&work->c->segment, part->slot, parent);
    bool is_late = atomic_load_explicit(&above->generation, memory_order_relaxed) == part->generation;
    bypass_hop_put(work, &(struct bypass_hop){.time_ns = bypass_now_ns(), .kind = SAPWOOD_HOP_ARRIVED,
                                              .flags = is_late ? SAPWOOD_HOP_LATE : 0,
                                              .rank = rank_at(work, parent), .child = rank_at(work, place)});
}

bool bypass_contribute(const struct bypass_work *work, const struct bypass_part *part)
{
    const struct bypass_segment *s = &work->c->segment;
    uint32_t place = work->place;
    struct bypass_node *node = bypass_node_at(s, part->slot, place);
    if (part->bytes > 0)
        memcpy(bypass_operand(s, part->slot, place, part->bytes), part->source, part->bytes);
    node->signature = work->signature;
    node->arrived_ns = work->arrived_ns;
    atomic_store_explicit(&node->generation, part->generation, memory_order_release);
    for (;;) {
        uint32_t children = bypass_children(place, s->size);
        if (children > 0) {
            if (atomic_fetch_add_explicit(&node->contributions, 1, memory_order_acq_rel) != children)
                return false;
            bool at_home = place == 0 && part->target != NULL && !work->to_all;
            fold(work, part, place, at_home ? part->target : bypass_result(s, part->slot, place, part->bytes));
            /* No other rank looks at it until the parent's counter, or the slot, says so. */
            atomic_store_explicit(&node->contributions, 0, memory_order_relaxed);
            note_sending(work, part, place);
            if (place == 0) {
                bypass_count(&bypass_account.completed, 1);
                if (!at_home)
                    publish(work, part);
                return at_home;
            }
        } else {
            note_sending(work, part, place);
        }
        node->ready_ns = work->arrived_ns;
        note_arrival(work, part, place);
        place = bypass_parent(place);
        node = bypass_node_at(s, part->slot, place);
    }
}

/* Whether the process is gone, or only its entry is left. */
static bool has_died(uint32_t pid)
{
    char path[64], line[512] = "";
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return true;
    bool read = fgets(line, sizeof line, file) != NULL;
    fclose(file);
    const char *name_end = strrchr(line, ')');
    return !read || (name_end != NULL && (name_end[2] == 'Z' || name_end[2] == 'X'));
}

static void fold_alone(const struct bypass_work *work, const struct bypass_part *part, uint32_t place,
                       unsigned char *into)
{
    const struct bypass_segment *s = &work->c->segment;
    memcpy(into, bypass_operand(s, part->slot, place, part->bytes), part->bytes);
    for (uint32_t bit = 1; bypass_has_child(place, bit, s->size); bit <<= 1) {
        unsigned char *of_child = malloc(part->bytes);
        if (of_child == NULL)
            abort();
        fold_alone(work, part, place | bit, of_child);
        bypass_calls.Reduce_local(of_child, into, (int)part->elements, work->call->type, work->call->operation);
        free(of_child);
    }
}

bool bypass_redo(const struct bypass_work *work, const struct bypass_part *part)
{
    const struct bypass_segment *s = &work->c->segment;
    bool a_death = false;
    for (uint32_t place = 0; place < s->size; place++) {
        struct bypass_node *node = bypass_node_at(s, part->slot, place);
        if (atomic_load_explicit(&node->generation, memory_order_acquire) != part->generation ||
            node->signature != work->signature)
            return false;
    }
    for (uint32_t rank = 0; rank < s->size; rank++)
        a_death = a_death || has_died(s->members[rank].pid);
    if (!a_death)
        return false;
    fold_alone(work, part, 0, part->target);
    bypass_count(&bypass_account.redone, 1);
    return true;
}
