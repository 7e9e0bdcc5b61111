/* Where a rank's counts go: one of the transports in transport/, by its name in
 * SAPWOOD_MPI_TRANSPORT. A transport is one file there, which registers itself:
 *
 *     static const struct sapwood_transport files = {.name = "files", ...};
 *     SAPWOOD_TRANSPORT(files);
 *
 *   SAPWOOD_MPI_TRANSPORT            tree (default), files, prometheus or none
 *   SAPWOOD_MPI_TRANSPORT_DIR        folder of those that write files; else the current one
 *   SAPWOOD_MPI_TRANSPORT_INTERVAL   seconds between two offloads while the program runs;
 *                                    without it there is one, at the end, and no thread
 */
#ifndef SAPWOOD_TRANSPORT_H
#define SAPWOOD_TRANSPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "table.h"

struct sapwood_transport {
    const char *name;
    /* The table is filled; `table_fd` stays the caller's. False, with a reason that is static
     * text, if the counts go nowhere. */
    bool (*open)(int table_fd, const char **reason);
    /* Takes what was counted so far; NULL if others read the table. */
    void (*offload)(void);
    /* In a forked child, which is no rank. May be NULL. */
    void (*forget)(void);
};

/* Puts a transport into the list of all, which the linker makes. */
#define SAPWOOD_TRANSPORT(transport)                                                    \
    __attribute__((used, section("sapwood_transports"))) static const struct sapwood_transport \
        *const transport##_registered = &(transport)

/* Opens the chosen transport. False, with a reason, if nothing will take the counts;
 * the reason may be `""` if that is what was asked for. */
bool sapwood_transport_open(int table_fd, const char **reason);

/* Whether the choice was made by name, so that its failure is to be told. */
bool sapwood_transport_is_chosen(void);

/* The connection to the leaf; -1 by another transport than the tree. */
int sapwood_leaf_socket(void);

/* The last offload. The table does not change any more. */
void sapwood_transport_end(void);

/* In a forked child. */
void sapwood_transport_forget(void);

/* Writes a file of the transport's folder, as a whole or not at all. What fails is said once. */
void sapwood_transport_write(const char *name, void (*fill)(FILE *file));

/* One event of the table, for those that write text. */
struct sapwood_event {
    const char *name;
    const char *class;
    char sizes[24]; /* sizes of the communicator, such as 5-8; empty for none */
    bool is_region;
    uint64_t count, time_ns, bytes;
};

/* The event at a place below slots_used; false if it has no counts. */
bool sapwood_transport_event(uint32_t place, struct sapwood_event *event);

/* The length of the UTF-8 sequence that begins here, 1 to 4; 0 if it is none. */
int sapwood_utf8_length(const char *text);

#endif
