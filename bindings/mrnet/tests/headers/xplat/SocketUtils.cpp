/*
 * xplat/SocketUtils.h by itself: a connection over the loopback interface.
 */
#include "xplat/SocketUtils.h"

#include <thread>

#include "../check.h"

using namespace XPlat;

static int transfer(XPlat_Socket one, XPlat_Socket other)
{
    std::string sent(3000000, 's'), got(sent.size(), '-');
    char first[] = "first", last[] = "last";
    SocketUtils::NCBuf out[] = {{5, first}, {0, NULL}, {sent.size(), &sent[0]}, {4, last}};
    ssize_t total = ssize_t(sent.size()) + 9, came = 0;
    char start[5], end[4];
    SocketUtils::NCBuf in[] = {{5, start}, {got.size(), &got[0]}, {4, end}};
    std::thread reader([&] { came = SocketUtils::Recv(other, in, 3); });
    ssize_t went = SocketUtils::Send(one, out, 4);
    reader.join();
    DEMAND(went == total && came == total && got == sent);
    DEMAND(memcmp(start, first, 5) == 0 && memcmp(end, last, 4) == 0);
    DEMAND(SocketUtils::send(other, "back", 4) == 4 && SocketUtils::recv(one, end, 4) == 4);
    DEMAND(memcmp(end, "back", 4) == 0);
    DEMAND(SocketUtils::SetBlockingMode(one, false) && SocketUtils::recv(one, end, 4) == -1);
    DEMAND(errno == EAGAIN && SocketUtils::SetBlockingMode(one, true));
    DEMAND(SocketUtils::send(other, "be", 2) == 2);
    DEMAND(SocketUtils::Shutdown(other, XPLAT_SHUT_WR) == 0);
    DEMAND(SocketUtils::recv(one, end, 4) == 2 && SocketUtils::recv(one, end, 4) == 0);
    DEMAND(SocketUtils::Shutdown(other, XPLAT_SHUT_RD) == 0);
    DEMAND(SocketUtils::Shutdown(one, XPLAT_SHUT_RDWR) == 0);
    DEMAND(SocketUtils::send(one, "late", 4) == -1 && errno == EPIPE);
    return 0;
}

int main()
{
    XPlat_Socket listening = SocketUtils::InvalidSocket, one, other;
    XPlat_Port port = 0, same = SocketUtils::InvalidPort;
    DEMAND(!SocketUtils::GetPort(listening, same) && same == SocketUtils::InvalidPort);
    DEMAND(SocketUtils::CreateListening(listening, port) && port != 0);
    DEMAND(SocketUtils::GetPort(listening, same) && same == port);
    XPlat_Socket taken = SocketUtils::InvalidSocket;
    DEMAND(!SocketUtils::CreateListening(taken, same) && errno == EADDRINUSE);
    DEMAND(!SocketUtils::AcceptConnection(listening, other, 0, true) && errno == EAGAIN);
    DEMAND(!SocketUtils::AcceptConnection(listening, other, 1) && errno == ETIMEDOUT);
    DEMAND(SocketUtils::Connect("127.0.0.1", port, one));
    DEMAND(SocketUtils::AcceptConnection(listening, other));
    int on = 1;
    DEMAND(SocketUtils::SetOption(one, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on));
    ALSO(transfer(one, other));
    DEMAND(SocketUtils::Close(one) && SocketUtils::Close(other) && SocketUtils::Close(listening));
    DEMAND(!SocketUtils::Close(SocketUtils::InvalidSocket));
    DEMAND(!SocketUtils::Connect("127.0.0.1", port, one, 1) && errno == ECONNREFUSED);
    DEMAND(!SocketUtils::Connect("no..where", port, one));
    XPlat_Port chosen = 0;
    DEMAND(SocketUtils::CreateListening(listening, chosen, true));
    DEMAND((fcntl(listening, F_GETFL) & O_NONBLOCK) != 0 && SocketUtils::Close(listening));
    std::vector<std::string> brought_in;
    DEMAND(brought_in.empty());
    return 0;
}
