/*
 * Connections over TCP. What gives a bool leaves the reason in errno.
 */
#ifndef XPLAT_SOCKETUTILS_H
#define XPLAT_SOCKETUTILS_H

#include <string>
#include <vector>

#include "xplat/Types.h"

enum SDHowType { XPLAT_SHUT_RD, XPLAT_SHUT_WR, XPLAT_SHUT_RDWR };

namespace XPlat {
namespace SocketUtils {

extern const XPlat_Socket InvalidSocket;
extern const XPlat_Port InvalidPort;

/* Tries again up to `retries` times, a quarter of a second apart, while the host refuses. */
bool Connect(const std::string& host, const XPlat_Port port, XPlat_Socket& socket,
             const unsigned retries = 0);
/* Listens on all interfaces; at port 0 the system chooses, and says which one it is. */
bool CreateListening(XPlat_Socket& socket, XPlat_Port& port, bool is_nonblocking = false);
/* Waits for some seconds; for 0 of them until a peer connects, or not at all if the call is not to
   block. The new connection blocks. */
bool AcceptConnection(const XPlat_Socket listening, XPlat_Socket& connected, int seconds = 0,
                      bool is_nonblocking = false);
bool GetPort(const XPlat_Socket socket, XPlat_Port& port);
bool SetOption(XPlat_Socket socket, int level, int option, void* value, socklen_t size);
bool SetBlockingMode(XPlat_Socket socket, bool is_blocking);
/* 0, or -1. */
int Shutdown(XPlat_Socket socket, SDHowType how);
bool Close(const XPlat_Socket socket);

struct NCBuf {
    size_t len;
    char* buf;
};

/* The bytes that went, all of them unless the socket does not block or the peer has closed; -1 for
   none and an error. */
ssize_t Send(XPlat_Socket socket, NCBuf* buffers, unsigned int count);
ssize_t Recv(XPlat_Socket socket, NCBuf* buffers, unsigned int count);
ssize_t send(XPlat_Socket socket, const void* bytes, size_t count);
ssize_t recv(XPlat_Socket socket, void* bytes, size_t count);

}  // namespace SocketUtils
}  // namespace XPlat

#endif
