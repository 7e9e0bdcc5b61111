/* One connection, one record: see handover.h for what travels. */
#define _GNU_SOURCE
#include "handover.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* Programs that close or reuse small descriptor numbers must not hit ours. */
enum { SOCKET_FD_MIN = 512, RETRY_MS = 5 };

static int number_from(const char *variable, uint32_t *number)
{
    const char *text = getenv(variable);
    if (text == NULL || *text < '0' || *text > '9')
        return -1;
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (errno != 0 || *end != '\0' || value == 0 || value > UINT32_MAX)
        return -1;
    *number = (uint32_t)value;
    return 0;
}

/* Fills in the leaf's address; its length, or 0 with the reason. */
static socklen_t leaf_address(uint32_t world_rank, struct sockaddr_un *address, const char **reason)
{
    const char *base = getenv("SAPWOOD_MPI_LEAVES");
    uint32_t ranks_per_leaf, leaf_count;
    if (base == NULL || *base == '\0') {
        *reason = "SAPWOOD_MPI_LEAVES is not set";
        return 0;
    }
    if (number_from("SAPWOOD_MPI_RANKS_PER_LEAF", &ranks_per_leaf) != 0 ||
        number_from("SAPWOOD_MPI_LEAF_COUNT", &leaf_count) != 0) {
        *reason = "SAPWOOD_MPI_RANKS_PER_LEAF and SAPWOOD_MPI_LEAF_COUNT must be numbers from 1";
        return 0;
    }
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    size_t room = sizeof address->sun_path - 1;
    int length = snprintf(address->sun_path + 1, room, "%s-%u", base, (world_rank / ranks_per_leaf) % leaf_count);
    if (length < 0 || (size_t)length >= room) {
        *reason = "SAPWOOD_MPI_LEAVES is too long for a socket name";
        return 0;
    }
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Connects without blocking; a full backlog is tried again until the deadline. */
static int connect_to(const struct sockaddr_un *address, socklen_t length, const char **reason)
{
    int64_t deadline = now_ms() + SAPWOOD_HANDOVER_MS_MAX;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        *reason = "no socket could be opened";
        return -1;
    }
    while (connect(fd, (const struct sockaddr *)address, length) != 0) {
        if ((errno != EAGAIN && errno != EINTR) || now_ms() >= deadline) {
            *reason = errno == EAGAIN ? "the leaf was too busy to accept" : "no leaf listens";
            close(fd);
            return -1;
        }
        nanosleep(&(struct timespec){.tv_nsec = RETRY_MS * 1000000}, NULL);
    }
    int high = fcntl(fd, F_DUPFD_CLOEXEC, SOCKET_FD_MIN);
    if (high < 0)
        return fd;
    close(fd);
    return high;
}

static int peer_is_ours(int fd)
{
    struct ucred peer;
    socklen_t length = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

static int send_hello(int fd, const struct sapwood_hello *hello, int table_fd)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    memset(&control, 0, sizeof control);
    struct iovec part = {.iov_base = (void *)(uintptr_t)hello, .iov_len = sizeof *hello};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(rights), &table_fd, sizeof table_fd);
    ssize_t sent;
    do
        sent = sendmsg(fd, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)sizeof *hello ? 0 : -1;
}

int sapwood_handover(uint32_t world_rank, uint32_t world_size, int table_fd, uint64_t table_bytes,
                     const char **reason)
{
    struct sockaddr_un address;
    socklen_t length = leaf_address(world_rank, &address, reason);
    if (length == 0)
        return -1;
    int fd = connect_to(&address, length, reason);
    if (fd < 0)
        return -1;
    struct sapwood_hello hello = {.version = SAPWOOD_HELLO_VERSION, .world_rank = world_rank,
                                  .world_size = world_size, .pid = (uint32_t)getpid(),
                                  .table_bytes = table_bytes};
    memcpy(hello.magic, SAPWOOD_HELLO_MAGIC, sizeof hello.magic);
    if (!peer_is_ours(fd))
        *reason = "the leaf belongs to another user";
    else if (send_hello(fd, &hello, table_fd) != 0)
        *reason = "the leaf closed the connection";
    else
        return fd;
    close(fd);
    return -1;
}
