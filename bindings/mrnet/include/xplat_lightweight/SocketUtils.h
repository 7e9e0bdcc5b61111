/*
 * Connections over TCP. What gives a bool_t leaves the reason in errno.
 */
#ifndef XPLAT_LIGHTWEIGHT_SOCKETUTILS_H
#define XPLAT_LIGHTWEIGHT_SOCKETUTILS_H

#include "xplat_lightweight/Types.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const XPlat_Socket InvalidSocket;
extern const XPlat_Port InvalidPort;

/* Tries again up to `retries` times, a quarter of a second apart, while the host refuses. */
bool_t XPlat_SocketUtils_Connect(const char *host, const XPlat_Port port, XPlat_Socket *socket,
                                 unsigned int retries);
/* Listens on all interfaces; at port 0 the system chooses, and says which one it is. */
bool_t XPlat_SocketUtils_CreateListening(XPlat_Socket *socket, XPlat_Port *port,
                                         bool_t is_nonblocking);
/* Waits for some seconds; for 0 of them until a peer connects, or not at all if the call is not to
   block. The new connection blocks. */
bool_t XPlat_SocketUtils_AcceptConnection(XPlat_Socket listening, XPlat_Socket *connected,
                                          int seconds, bool_t is_nonblocking);
bool_t XPlat_SocketUtils_GetPort(const XPlat_Socket socket, XPlat_Port *port);
bool_t XPlat_SocketUtils_SetBlockingMode(XPlat_Socket socket, bool_t is_blocking);
bool_t XPlat_SocketUtils_SetOption(XPlat_Socket socket, int level, int option, void *value,
                                   socklen_t size);
bool_t XPlat_SocketUtils_Close(XPlat_Socket socket);

typedef struct {
    size_t len;
    char *buf;
} XPlat_NCBuf_t;

/* An empty one, for the caller to free. */
XPlat_NCBuf_t *XPlat_new_NCBuf(void);

/* The bytes that went, all of them unless the socket does not block or the peer has closed; -1 for
   none and an error. */
ssize_t XPlat_SocketUtils_Send(XPlat_Socket socket, XPlat_NCBuf_t *buffers, unsigned int count);
ssize_t XPlat_SocketUtils_Recv(XPlat_Socket socket, XPlat_NCBuf_t *buffers, unsigned int count);
ssize_t XPlat_SocketUtils_send(XPlat_Socket socket, const void *bytes, size_t count);
ssize_t XPlat_SocketUtils_recv(XPlat_Socket socket, void *bytes, size_t count);

#ifdef __cplusplus
}
#endif

#endif
