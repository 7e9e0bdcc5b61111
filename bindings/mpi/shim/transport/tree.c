/* The transport to the tree of `sapwood mpi`: the table goes once to a leaf, which reads
 * it whenever it is asked; see handover.h. */
#include <unistd.h>

#include "control.h"
#include "events.h"
#include "handover.h"
#include "observe.h"
#include "transport.h"

/* Open as long as the process lives: its end tells the leaf of a death. */
static int leaf_socket = -1;

static bool open_tree(int table_fd, const char **reason)
{
    const struct sapwood_header *header = &sapwood_table->header;
    int control_fd = sapwood_control_make();
    const struct sapwood_hello hello = {.world_rank = header->world_rank, .world_size = header->world_size,
                                        .table_bytes = header->table_bytes, .is_spawned = header->is_spawned,
                                        .events_bytes = sapwood_events_bytes()};
    leaf_socket = sapwood_handover(&hello, table_fd, control_fd, sapwood_events_fd(), reason);
    return leaf_socket >= 0;
}

int sapwood_leaf_socket(void)
{
    return leaf_socket;
}

/* A child keeps no leaf waiting for the rank's end. */
static void forget_tree(void)
{
    if (leaf_socket >= 0)
        close(leaf_socket);
    leaf_socket = -1;
}

static const struct sapwood_transport tree = {.name = "tree", .open = open_tree, .forget = forget_tree};
SAPWOOD_TRANSPORT(tree);
