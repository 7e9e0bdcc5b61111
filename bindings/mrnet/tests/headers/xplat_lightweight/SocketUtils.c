/*
 * xplat_lightweight/SocketUtils.h by itself: a connection over the loopback interface.
 */
#include "xplat_lightweight/SocketUtils.h"

#include <pthread.h>

#include "../check.h"

enum { BYTES = 3000000 };
static XPlat_Socket one, other;
static char sent[BYTES], got[BYTES];

static void *receive(void *total)
{
    char start[5];
    XPlat_NCBuf_t in[] = {{5, start}, {BYTES, got}};
    *(ssize_t *)total = XPlat_SocketUtils_Recv(other, in, 2);
    return NULL;
}

static int transfer(void)
{
    char first[] = "first", end[4];
    XPlat_NCBuf_t out[] = {{5, first}, {BYTES, sent}};
    pthread_t thread;
    ssize_t came = 0;
    memset(sent, 's', BYTES);
    DEMAND(pthread_create(&thread, NULL, receive, &came) == 0);
    DEMAND(XPlat_SocketUtils_Send(one, out, 2) == BYTES + 5 && pthread_join(thread, NULL) == 0);
    DEMAND(came == BYTES + 5 && memcmp(sent, got, BYTES) == 0);
    DEMAND(XPlat_SocketUtils_send(other, "back", 4) == 4);
    DEMAND(XPlat_SocketUtils_recv(one, end, 4) == 4 && memcmp(end, "back", 4) == 0);
    DEMAND(XPlat_SocketUtils_SetBlockingMode(one, false));
    DEMAND(XPlat_SocketUtils_recv(one, end, 4) == -1 && errno == EAGAIN);
    return 0;
}

int main(void)
{
    XPlat_Socket listening = InvalidSocket;
    XPlat_Port port = 0, same = InvalidPort;
    XPlat_NCBuf_t *buffer = XPlat_new_NCBuf();
    int on = 1;
    DEMAND(buffer != NULL && buffer->len == 0 && buffer->buf == NULL);
    free(buffer);
    DEMAND(!XPlat_SocketUtils_GetPort(listening, &same) && same == (XPlat_Port)-1);
    DEMAND(XPlat_SocketUtils_CreateListening(&listening, &port, false) && port != 0);
    DEMAND(XPlat_SocketUtils_GetPort(listening, &same) && same == port);
    DEMAND(!XPlat_SocketUtils_AcceptConnection(listening, &other, 0, true) && errno == EAGAIN);
    DEMAND(XPlat_SocketUtils_Connect("localhost", port, &one, 0));
    DEMAND(XPlat_SocketUtils_AcceptConnection(listening, &other, 30, false));
    DEMAND(XPlat_SocketUtils_SetOption(one, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on));
    ALSO(transfer());
    DEMAND(XPlat_SocketUtils_Close(one) && XPlat_SocketUtils_Close(other));
    DEMAND(XPlat_SocketUtils_Close(listening) && !XPlat_SocketUtils_Close(InvalidSocket));
    DEMAND(!XPlat_SocketUtils_Connect("127.0.0.1", port, &one, 0) && errno == ECONNREFUSED);
    return 0;
}
