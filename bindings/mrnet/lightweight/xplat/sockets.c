/*
 * Connections over TCP, for both languages.
 */
#include <poll.h>
#include <sys/uio.h>
#include <time.h>

#include "hosts.h"
#include "xplat_lightweight/SocketUtils.h"

/* Between two tries to connect. */
#define RETRY_NANOSECONDS 250000000L
/* Connections that wait to be accepted. */
#define BACKLOG 128
/* Buffers of one call of the system. */
#define BUFFERS_AT_ONCE 64

static int close_keeping_errno(int socket)
{
    int error = errno;
    close(socket);
    errno = error;
    return -1;
}

/* A socket that is connected to one of the addresses, or -1. */
static int connect_to_any(const struct addrinfo *at, XPlat_Port port)
{
    int found = -1;
    for (; at != NULL && found < 0; at = at->ai_next) {
        struct sockaddr_storage address;
        memcpy(&address, at->ai_addr, at->ai_addrlen);
        if (at->ai_family == AF_INET)
            ((struct sockaddr_in *)&address)->sin_port = htons(port);
        else
            ((struct sockaddr_in6 *)&address)->sin6_port = htons(port);
        found = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (found >= 0 && connect(found, (struct sockaddr *)&address, at->ai_addrlen) != 0)
            found = close_keeping_errno(found);
    }
    return found;
}

bool_t XPlat_SocketUtils_Connect(const char *host, const XPlat_Port port, XPlat_Socket *socket,
                                 unsigned int retries)
{
    const struct timespec pause = {0, RETRY_NANOSECONDS};
    struct addrinfo *addresses;
    int on = 1;
    if (mrn_addresses(host, 0, &addresses) != 0)
        return false;
    int found = connect_to_any(addresses, port);
    while (found < 0 && retries-- > 0 && (errno == ECONNREFUSED || errno == ETIMEDOUT)) {
        nanosleep(&pause, NULL);
        found = connect_to_any(addresses, port);
    }
    freeaddrinfo(addresses);
    if (found < 0)
        return false;
    setsockopt(found, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    *socket = found;
    return true;
}

bool_t XPlat_SocketUtils_CreateListening(XPlat_Socket *socket_place, XPlat_Port *port,
                                         bool_t is_nonblocking)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(*port)};
    int flags = SOCK_STREAM | SOCK_CLOEXEC | (is_nonblocking ? SOCK_NONBLOCK : 0), on = 1;
    int made = socket(AF_INET, flags, 0);
    if (made < 0)
        return false;
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(made, (struct sockaddr *)&address, sizeof address) != 0 || listen(made, BACKLOG) != 0 ||
        !XPlat_SocketUtils_GetPort(made, port)) {
        close_keeping_errno(made);
        return false;
    }
    *socket_place = made;
    return true;
}

bool_t XPlat_SocketUtils_AcceptConnection(XPlat_Socket listening, XPlat_Socket *connected,
                                          int seconds, bool_t is_nonblocking)
{
    struct pollfd watched = {.fd = listening, .events = POLLIN};
    int limit = seconds > 0 ? (seconds < INT_MAX / 1000 ? seconds * 1000 : INT_MAX)
                            : (is_nonblocking ? 0 : -1);
    int ready, on = 1;
    do
        ready = poll(&watched, 1, limit);
    while (ready < 0 && errno == EINTR);
    if (ready == 0)
        errno = is_nonblocking ? EAGAIN : ETIMEDOUT;
    if (ready <= 0)
        return false;
    int made = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
    if (made < 0)
        return false;
    setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    *connected = made;
    return true;
}

bool_t XPlat_SocketUtils_GetPort(const XPlat_Socket socket, XPlat_Port *port)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    if (getsockname(socket, (struct sockaddr *)&address, &size) != 0)
        return false;
    if (address.ss_family != AF_INET && address.ss_family != AF_INET6) {
        errno = EAFNOSUPPORT;
        return false;
    }
    *port = ntohs(address.ss_family == AF_INET ? ((struct sockaddr_in *)&address)->sin_port
                                               : ((struct sockaddr_in6 *)&address)->sin6_port);
    return true;
}

bool_t XPlat_SocketUtils_SetBlockingMode(XPlat_Socket socket, bool_t is_blocking)
{
    int flags = fcntl(socket, F_GETFL);
    return flags >= 0 &&
           fcntl(socket, F_SETFL, is_blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK) == 0;
}

bool_t XPlat_SocketUtils_SetOption(XPlat_Socket socket, int level, int option, void *value,
                                   socklen_t size)
{
    return setsockopt(socket, level, option, value, size) == 0;
}

bool_t XPlat_SocketUtils_Close(XPlat_Socket socket)
{
    return close(socket) == 0;
}

XPlat_NCBuf_t *XPlat_new_NCBuf(void)
{
    return calloc(1, sizeof(XPlat_NCBuf_t));
}

/* The buffers without their first bytes, as many of them as one system call takes. */
static size_t rest_of(const XPlat_NCBuf_t *buffers, unsigned int count, size_t done,
                      struct iovec *rest)
{
    size_t found = 0;
    for (; count > 0 && found < BUFFERS_AT_ONCE; buffers++, count--) {
        if (done >= buffers->len) {
            done -= buffers->len;
            continue;
        }
        rest[found].iov_base = buffers->buf + done;
        rest[found++].iov_len = buffers->len - done;
        done = 0;
    }
    return found;
}

static ssize_t transfer(XPlat_Socket socket, const XPlat_NCBuf_t *buffers, unsigned int count,
                        int is_out)
{
    struct iovec rest[BUFFERS_AT_ONCE];
    struct msghdr message = {.msg_iov = rest};
    size_t done = 0;
    while ((message.msg_iovlen = rest_of(buffers, count, done, rest)) > 0) {
        ssize_t now = is_out ? sendmsg(socket, &message, MSG_NOSIGNAL) : recvmsg(socket, &message, 0);
        if (now < 0 && errno == EINTR)
            continue;
        if (now < 0)
            return done > 0 ? (ssize_t)done : -1;
        if (now == 0)
            break;
        done += (size_t)now;
    }
    return (ssize_t)done;
}

ssize_t XPlat_SocketUtils_Send(XPlat_Socket socket, XPlat_NCBuf_t *buffers, unsigned int count)
{
    return transfer(socket, buffers, count, 1);
}

ssize_t XPlat_SocketUtils_Recv(XPlat_Socket socket, XPlat_NCBuf_t *buffers, unsigned int count)
{
    return transfer(socket, buffers, count, 0);
}

ssize_t XPlat_SocketUtils_send(XPlat_Socket socket, const void *bytes, size_t count)
{
    XPlat_NCBuf_t one = {count, (char *)bytes};
    return transfer(socket, &one, 1, 1);
}

ssize_t XPlat_SocketUtils_recv(XPlat_Socket socket, void *bytes, size_t count)
{
    XPlat_NCBuf_t one = {count, bytes};
    return transfer(socket, &one, 1, 0);
}
