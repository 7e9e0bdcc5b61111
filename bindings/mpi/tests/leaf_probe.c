/* Plays the leaves for the tests: takes the tables of an MPI program's ranks and
 * prints each when its rank's socket ends.
 *
 *     leaf_probe BASE LEAVES TABLES SECONDS_MAX RAW_DIR
 *
 * Listens on the abstract sockets BASE-0 .. BASE-(LEAVES-1), prints "ready", and
 * ends after TABLES tables or SECONDS_MAX. Each table's bytes also go to
 * RAW_DIR/rank-<r>.seen. Exit code 0 if all tables came, 1 if not. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "handover.h"
#include "table.h"

enum { PEERS_MAX = 512, BACKLOG = 64 };

struct peer {
    int fd;
    const struct sapwood_table *table; /* NULL for a listening socket */
};
static struct peer peers[PEERS_MAX];
static int peer_count;

static void fail(const char *what)
{
    fprintf(stderr, "leaf_probe: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void listen_at(const char *base, int leaf)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s-%d", base, leaf);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, bytes) != 0 || listen(fd, BACKLOG) != 0)
        fail("listen");
    peers[peer_count++] = (struct peer){fd, NULL};
}

/* The descriptor that came with the hello, or -1 if it is not a good one. */
static int received_table(int fd)
{
    struct sapwood_hello hello;
    char control[CMSG_SPACE(2 * sizeof(int))];
    struct iovec part = {&hello, sizeof hello};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    struct cmsghdr *rights = got == sizeof hello ? CMSG_FIRSTHDR(&message) : NULL;
    if (rights == NULL || rights->cmsg_type != SCM_RIGHTS || rights->cmsg_len != CMSG_LEN(2 * sizeof(int)) ||
        memcmp(hello.magic, SAPWOOD_HELLO_MAGIC, 8) != 0 || hello.version != SAPWOOD_HELLO_VERSION ||
        hello.table_bytes > sizeof(struct sapwood_table) + SAPWOOD_SNAPSHOTS * sizeof(struct sapwood_snapshot) ||
        hello.table_bytes < offsetof(struct sapwood_table, tallies))
        return -1;
    int descriptors[2];
    memcpy(descriptors, CMSG_DATA(rights), sizeof descriptors);
    close(descriptors[1]);
    return descriptors[0];
}

static void accept_rank(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        fail("accept");
    int table_fd = received_table(fd);
    struct stat status;
    if (table_fd < 0 || fstat(table_fd, &status) != 0 ||
        status.st_size < (off_t)offsetof(struct sapwood_table, tallies))
        fail("hello");
    /* The rank sealed its table against writing by other processes. */
    void *writable = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, table_fd, 0);
    printf("sealed %s\n", writable == MAP_FAILED ? "yes" : "no");
    const void *table = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, table_fd, 0);
    if (table == MAP_FAILED)
        fail("mmap");
    close(table_fd);
    peers[peer_count++] = (struct peer){fd, table};
}

static void print_table(const struct sapwood_table *table)
{
    const struct sapwood_header *h = &table->header;
    printf("table rank %u of %u pid %u abi %u state %u host %.64s program %.64s dropped %" PRIu64 "\n", h->world_rank,
           h->world_size, h->pid, h->abi, h->state, h->host, h->program, h->dropped);
    for (uint32_t i = 0; i < h->slots_used && i < h->slot_capacity; i++) {
        const struct sapwood_slot *slot = &table->slots[i];
        if (slot->key & SAPWOOD_KEY_REGION)
            printf("region %s", table->names + (slot->key & ~SAPWOOD_KEY_REGION));
        else
            printf("function %" PRIu64 " class %u", slot->key >> 8, (unsigned)(slot->key & 0xff));
        printf(" count %" PRIu64 " time_ns %" PRIu64 " bytes %" PRIu64 "\n", slot->count, slot->time_ns, slot->bytes);
    }
}

static void save_table(const struct sapwood_table *table, const char *directory)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/rank-%u.seen", directory, table->header.world_rank);
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(table, table->header.table_bytes, 1, file) != 1 || fclose(file) != 0)
        fail(path);
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Serves one wake-up; how many tables ended in it. */
static int serve(const char *directory, int64_t wait_ms)
{
    struct pollfd waiting[PEERS_MAX];
    for (int i = 0; i < peer_count; i++)
        waiting[i] = (struct pollfd){.fd = peers[i].fd, .events = POLLIN};
    int known = peer_count, ended = 0;
    if (poll(waiting, (nfds_t)known, (int)wait_ms) < 0 && errno != EINTR)
        fail("poll");
    for (int i = known - 1; i >= 0; i--) {
        if (waiting[i].revents == 0)
            continue;
        if (peers[i].table == NULL) {
            accept_rank(peers[i].fd);
            continue;
        }
        print_table(peers[i].table);
        save_table(peers[i].table, directory);
        close(peers[i].fd);
        peers[i] = peers[--peer_count];
        ended++;
    }
    return ended;
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: leaf_probe BASE LEAVES TABLES SECONDS_MAX RAW_DIR\n");
        return 2;
    }
    for (int leaf = 0; leaf < atoi(argv[2]); leaf++)
        listen_at(argv[1], leaf);
    printf("ready\n");
    fflush(stdout);
    int left = atoi(argv[3]);
    int64_t deadline = now_ms() + 1000 * (int64_t)atoi(argv[4]);
    while (left > 0 && now_ms() < deadline)
        left -= serve(argv[5], deadline - now_ms() + 1);
    return left > 0;
}
