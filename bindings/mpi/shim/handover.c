/* One connection, one record: see handover.h for what travels. */
#define _GNU_SOURCE
#include "handover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { RETRY_MS = 5 };

static int number_from(const char *variable, uint32_t least, uint32_t *number)
{
    const char *text = getenv(variable);
    if (text == NULL || *text < '0' || *text > '9')
        return -1;
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (errno != 0 || *end != '\0' || value < least || value > UINT32_MAX)
        return -1;
    *number = (uint32_t)value;
    return 0;
}

uint32_t sapwood_rank_on_host(uint32_t world_rank)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMI_LOCAL_RANK",
                                            "PMIX_LOCAL_RANK", "FLUX_TASK_LOCAL_ID"};
    uint32_t rank;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (number_from(variables[i], 0, &rank) == 0)
            return rank;
    /* Under mpirun or Hydra in a Slurm job this one is of their daemon; these set one of those above. */
    if (number_from("SLURM_LOCALID", 0, &rank) == 0)
        return rank;
    return world_rank;
}

/* Where the leaves of this host are. */
struct leaves {
    const char *base;
    uint32_t first;   /* the one for this rank */
    uint32_t wait_ms; /* how long one may take to start */
};

static int leaves_from_environment(uint32_t world_rank, struct leaves *leaves, const char **reason)
{
    uint32_t ranks_per_leaf, leaf_count;
    leaves->base = getenv("SAPWOOD_MPI_LEAVES");
    if (leaves->base == NULL || *leaves->base == '\0') {
        *reason = "SAPWOOD_MPI_LEAVES is not set";
        return -1;
    }
    if (number_from("SAPWOOD_MPI_RANKS_PER_LEAF", 1, &ranks_per_leaf) != 0 ||
        number_from("SAPWOOD_MPI_LEAF_COUNT", 1, &leaf_count) != 0) {
        *reason = "SAPWOOD_MPI_RANKS_PER_LEAF and SAPWOOD_MPI_LEAF_COUNT must be numbers from 1";
        return -1;
    }
    leaves->first = sapwood_rank_on_host(world_rank) / ranks_per_leaf % leaf_count;
    if (number_from("SAPWOOD_MPI_LEAF_WAIT_MS", 0, &leaves->wait_ms) != 0)
        leaves->wait_ms = 0;
    return 0;
}

/* Fills in a leaf's address; its length, or 0 with the reason. */
static socklen_t leaf_address(const char *base, uint32_t leaf, struct sockaddr_un *address, const char **reason)
{
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    size_t room = sizeof address->sun_path - 1;
    int length = snprintf(address->sun_path + 1, room, "%s-%u", base, leaf);
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

/* Why a connection was refused. Only where no leaf listens may one come later, or another one be there. */
static const char *refusal(int failure)
{
    switch (failure) {
    case EAGAIN:
    case EINTR:
        return "the leaf was too busy to accept";
    case EACCES:
    case EPERM:
        return "the system does not allow a connection to the leaf";
    default:
        return "no leaf listens";
    }
}

/* Connects without blocking; a full backlog is tried again until the deadline. Where it fails, `is_final` says whether
 * it would again. */
static int connect_to(const struct sockaddr_un *address, socklen_t length, const char **reason, bool *is_final)
{
    int64_t deadline = now_ms() + SAPWOOD_HANDOVER_MS_MAX;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    *is_final = fd < 0;
    if (fd < 0) {
        *reason = "no socket could be opened";
        return -1;
    }
    while (connect(fd, (const struct sockaddr *)address, length) != 0) {
        int failure = errno;
        if ((failure != EAGAIN && failure != EINTR) || now_ms() >= deadline) {
            *reason = refusal(failure);
            *is_final = failure == EACCES || failure == EPERM;
            close(fd);
            return -1;
        }
        nanosleep(&(struct timespec){.tv_nsec = RETRY_MS * 1000000}, NULL);
    }
    int high = fcntl(fd, F_DUPFD_CLOEXEC, SAPWOOD_FD_MIN);
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

static int send_hello(int fd, const struct sapwood_hello *hello, const int *descriptors, size_t count)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(3 * sizeof(int))];
    } control;
    memset(&control, 0, sizeof control);
    struct iovec part = {.iov_base = (void *)(uintptr_t)hello, .iov_len = sizeof *hello};
    size_t length = count * sizeof(int);
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes,
                             .msg_controllen = CMSG_SPACE(length)};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(length);
    memcpy(CMSG_DATA(rights), descriptors, length);
    ssize_t sent;
    do
        sent = sendmsg(fd, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)sizeof *hello ? 0 : -1;
}

/* Connects to the rank's leaf, or where none listens to the next lower one of the host. What a leaf that comes later
 * would not change is not waited for. */
static int connect_to_leaf(const struct leaves *leaves, const char **reason)
{
    int64_t deadline = now_ms() + leaves->wait_ms;
    bool is_final = false;
    for (;;) {
        for (uint32_t leaf = leaves->first;; leaf--) {
            struct sockaddr_un address;
            socklen_t length = leaf_address(leaves->base, leaf, &address, reason);
            int fd = length == 0 ? -1 : connect_to(&address, length, reason, &is_final);
            if (fd >= 0 || length == 0 || is_final)
                return fd;
            if (leaf == 0)
                break;
        }
        if (now_ms() >= deadline)
            return -1;
        nanosleep(&(struct timespec){.tv_nsec = RETRY_MS * 1000000}, NULL);
    }
}

int sapwood_handover(const struct sapwood_hello *about, int table_fd, int control_fd, int events_fd,
                     const char **reason)
{
    struct leaves leaves;
    if (leaves_from_environment(about->world_rank, &leaves, reason) != 0)
        return -1;
    int fd = connect_to_leaf(&leaves, reason);
    if (fd < 0)
        return -1;
    struct sapwood_hello hello = *about;
    hello.version = SAPWOOD_HELLO_VERSION;
    hello.pid = (uint32_t)getpid();
    memcpy(hello.magic, SAPWOOD_HELLO_MAGIC, sizeof hello.magic);
    /* A reader knows which they are by their order: without a page there are no events. */
    int descriptors[] = {table_fd, control_fd, events_fd};
    size_t count = control_fd < 0 ? 1 : events_fd < 0 ? 2 : 3;
    if (count < 3)
        hello.events_bytes = 0;
    if (!peer_is_ours(fd))
        *reason = "the leaf belongs to another user";
    else if (send_hello(fd, &hello, descriptors, count) != 0)
        *reason = "the leaf closed the connection";
    else
        return fd;
    close(fd);
    return -1;
}
