/* Hands a rank's profile table to its leaf of the tree, once, when counting begins.
 *
 * The environment says where the leaves are:
 *
 *   SAPWOOD_MPI_LEAVES          base of their names
 *   SAPWOOD_MPI_RANKS_PER_LEAF  N, from 1
 *   SAPWOOD_MPI_LEAF_COUNT      L, from 1: leaves on each host
 *   SAPWOOD_MPI_LEAF_WAIT_MS    how long a leaf may take to start; 0
 *
 * Let r be the rank's number among the ranks of its host, which the launcher sets
 * in its environment, or else its rank in the world. It connects (SOCK_SEQPACKET)
 * to the abstract Unix socket "\0<base>-<(r / N) % L>", which exists on each host
 * by itself, or if none listens to the next lower number that one listens at. It
 * sends one record, the hello, with the memfd of the table as its first SCM_RIGHTS
 * descriptor, that of the control page (control.h), if there is one, as its second,
 * and that of the event file (events.h), if there is one, as its third. The first and the
 * third may be ordinary files, without seals (events_folder.h). No answer is
 * awaited. The socket stays open as long as the process lives, so its end tells the
 * leaf of a death.
 *
 *   hello, 64 bytes, little-endian
 *     0  magic        8 bytes  "SWHELLO1"
 *     8  version      u32      3
 *    12  world_rank   u32
 *    16  world_size   u32
 *    20  pid          u32
 *    24  table_bytes  u64
 *    32  is_spawned   u32      1 if MPI_Comm_spawn started the process
 *    36  reserved     4 bytes 0
 *    40  events_bytes u64      size of the event file; 0 none
 *    48  reserved     16 bytes 0
 *
 * Processes that MPI_Comm_spawn starts have ranks of a world of their own; the pid
 * tells them from the first world's, and `is_spawned` says so.
 *
 * The peer must run under our user id (SO_PEERCRED), else nothing is sent.
 */
#ifndef SAPWOOD_HANDOVER_H
#define SAPWOOD_HANDOVER_H

#include <assert.h>
#include <stdint.h>

#define SAPWOOD_HELLO_MAGIC "SWHELLO1"
#define SAPWOOD_HELLO_VERSION 3u

/* Programs that close or reuse small descriptor numbers must not hit ours. */
#define SAPWOOD_FD_MIN 512

/* The longest that a program is held up when its leaf is too busy to accept. */
#define SAPWOOD_HANDOVER_MS_MAX 200

struct sapwood_hello {
    char magic[8];
    uint32_t version;
    uint32_t world_rank;
    uint32_t world_size;
    uint32_t pid;
    uint64_t table_bytes;
    uint32_t is_spawned;
    uint32_t reserved;
    uint64_t events_bytes;
    unsigned char reserved_too[16];
};

static_assert(sizeof(struct sapwood_hello) == 64, "hello bytes");

/* The number of this rank among those of its host, or in the world where no launcher says it. */
uint32_t sapwood_rank_on_host(uint32_t world_rank);

/* Connects and sends what `about` says of the rank. A descriptor is -1 for none. Returns the open socket, or -1 with one clear reason in
 * `*reason` (static text). */
int sapwood_handover(const struct sapwood_hello *about, int table_fd, int control_fd, int events_fd,
                     const char **reason);

#endif
