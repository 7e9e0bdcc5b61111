/* Hands a rank's profile table to its leaf of the tree, once, when counting begins.
 *
 * The environment says where the leaves are:
 *
 *   SAPWOOD_MPI_LEAVES          base of their names
 *   SAPWOOD_MPI_RANKS_PER_LEAF  N, from 1
 *   SAPWOOD_MPI_LEAF_COUNT      L, from 1
 *
 * Rank r connects (SOCK_SEQPACKET) to the abstract Unix socket
 * "\0<base>-<(r / N) % L>" and sends one record, the hello, with the memfd of the
 * table as its only SCM_RIGHTS descriptor. No answer is awaited. The socket stays
 * open as long as the process lives, so its end tells the leaf of a death.
 *
 *   hello, 64 bytes, little-endian
 *     0  magic        8 bytes  "SWHELLO1"
 *     8  version      u32      1
 *    12  world_rank   u32
 *    16  world_size   u32
 *    20  pid          u32
 *    24  table_bytes  u64
 *    32  reserved     32 bytes 0
 *
 * Processes that MPI_Comm_spawn starts have ranks of a world of their own; the pid
 * tells them from the first world's.
 *
 * The peer must run under our user id (SO_PEERCRED), else nothing is sent.
 */
#ifndef SAPWOOD_HANDOVER_H
#define SAPWOOD_HANDOVER_H

#include <assert.h>
#include <stdint.h>

#define SAPWOOD_HELLO_MAGIC "SWHELLO1"
#define SAPWOOD_HELLO_VERSION 1u

/* The longest that a program is held up when its leaf is too busy to accept. */
#define SAPWOOD_HANDOVER_MS_MAX 200

struct sapwood_hello {
    char magic[8];
    uint32_t version;
    uint32_t world_rank;
    uint32_t world_size;
    uint32_t pid;
    uint64_t table_bytes;
    unsigned char reserved[32];
};

static_assert(sizeof(struct sapwood_hello) == 64, "hello bytes");

/* Connects and sends. Returns the open socket, or -1 with one clear reason in
 * `*reason` (static text). */
int sapwood_handover(uint32_t world_rank, uint32_t world_size, int table_fd, uint64_t table_bytes,
                     const char **reason);

#endif
