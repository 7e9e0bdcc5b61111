/*
 * Connections over TCP by their names in C++.
 */
#include "xplat/SocketUtils.h"

#include "xplat_lightweight/SocketUtils.h"

namespace XPlat {
namespace SocketUtils {

const XPlat_Socket InvalidSocket = -1;
const XPlat_Port InvalidPort = XPlat_Port(-1);

bool Connect(const std::string& host, const XPlat_Port port, XPlat_Socket& socket,
             const unsigned retries)
{
    return XPlat_SocketUtils_Connect(host.c_str(), port, &socket, retries);
}

bool CreateListening(XPlat_Socket& socket, XPlat_Port& port, bool is_nonblocking)
{
    return XPlat_SocketUtils_CreateListening(&socket, &port, is_nonblocking);
}

bool AcceptConnection(const XPlat_Socket listening, XPlat_Socket& connected, int seconds,
                      bool is_nonblocking)
{
    return XPlat_SocketUtils_AcceptConnection(listening, &connected, seconds, is_nonblocking);
}

bool GetPort(const XPlat_Socket socket, XPlat_Port& port)
{
    return XPlat_SocketUtils_GetPort(socket, &port);
}

bool SetOption(XPlat_Socket socket, int level, int option, void* value, socklen_t size)
{
    return XPlat_SocketUtils_SetOption(socket, level, option, value, size);
}

bool SetBlockingMode(XPlat_Socket socket, bool is_blocking)
{
    return XPlat_SocketUtils_SetBlockingMode(socket, is_blocking);
}

int Shutdown(XPlat_Socket socket, SDHowType how)
{
    return shutdown(socket, how == XPLAT_SHUT_RD ? SHUT_RD : how == XPLAT_SHUT_WR ? SHUT_WR : SHUT_RDWR);
}

bool Close(const XPlat_Socket socket)
{
    return XPlat_SocketUtils_Close(socket);
}

static_assert(sizeof(NCBuf) == sizeof(XPlat_NCBuf_t), "buffers are the same in both languages");

ssize_t Send(XPlat_Socket socket, NCBuf* buffers, unsigned int count)
{
    return XPlat_SocketUtils_Send(socket, reinterpret_cast<XPlat_NCBuf_t*>(buffers), count);
}

ssize_t Recv(XPlat_Socket socket, NCBuf* buffers, unsigned int count)
{
    return XPlat_SocketUtils_Recv(socket, reinterpret_cast<XPlat_NCBuf_t*>(buffers), count);
}

ssize_t send(XPlat_Socket socket, const void* bytes, size_t count)
{
    return XPlat_SocketUtils_send(socket, bytes, count);
}

ssize_t recv(XPlat_Socket socket, void* bytes, size_t count)
{
    return XPlat_SocketUtils_recv(socket, bytes, count);
}

}  // namespace SocketUtils
}  // namespace XPlat
