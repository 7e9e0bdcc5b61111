/*
 * Reads what the filter `prefix-tree` gives (docs/sketches.md): the nodes in order of depth, then of
 * path, the root first. All of it points into the packet.
 */
#ifndef PREFIX_TREE_H
#define PREFIX_TREE_H

#include <sapwood.h>

#include <stdio.h>

struct prefix_tree {
    const char *const *names;
    const uint32_t *parents, *name_of, *range_counts;
    const uint32_t *ranges; /* first and last rank, two numbers each */
    uint32_t count;
};

static int prefix_tree_read(struct prefix_tree *tree, const sapwood_packet_t *packet,
                            sapwood_error_t *error)
{
    return sapwood_packet_read(packet, error, "%ud %uc %as %aud %aud %auld %aud %aud", NULL, NULL,
                               &tree->names, NULL, &tree->parents, &tree->count, &tree->name_of,
                               NULL, NULL, NULL, &tree->range_counts, NULL, &tree->ranges, NULL);
}

/* The first of a node's ranges, and how many it has: its own, or those of the nearest node above. */
static const uint32_t *prefix_tree_ranks(const struct prefix_tree *tree, uint32_t node,
                                         uint32_t *count)
{
    const uint32_t *ranges = tree->ranges;
    while (tree->range_counts[node] == 0 && node != 0)
        node = tree->parents[node];
    for (uint32_t before = 0; before < node; before++)
        ranges += 2 * tree->range_counts[before];
    *count = tree->range_counts[node];
    return ranges;
}

static void prefix_tree_print_ranks(const struct prefix_tree *tree, uint32_t node)
{
    uint32_t count;
    const uint32_t *ranges = prefix_tree_ranks(tree, node, &count);
    for (uint32_t i = 0; i < count; i++) {
        printf(i == 0 ? "%u" : ",%u", ranges[2 * i]);
        if (ranges[2 * i + 1] != ranges[2 * i])
            printf("-%u", ranges[2 * i + 1]);
    }
}

#endif
