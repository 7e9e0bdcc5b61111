/*
 * xplat/Types.h by itself brings in what the system has.
 */
#include "xplat/Types.h"

#include "../check.h"

int main()
{
    XPlat_Socket socket = -1;
    XPlat_Port port = UINT16_MAX;
    char host[XPLAT_MAX_HOSTNAME_LEN], path[XPLAT_PATH_MAX_LEN], text[64];
    snprintf(text, sizeof text, "%" PRIu64 " %" PRIszt " %" PRIsszt, uint64_t(1) << 40, sizeof host,
             ssize_t(-2));
    DEMAND(strcmp(text, "1099511627776 256 -2") == 0 && sizeof path == 257);
    DEMAND(socket < 0 && port == 65535 && std::strlen(text) == 20 && CHAR_BIT == 8);
    DEMAND(fcntl(socket, F_GETFL) == -1 && errno == EBADF && htons(1) != 0 && TCP_NODELAY != 0);
    struct stat found;
    struct timeval now;
    assert(std::abs(-1) == 1);
    DEMAND(stat("/", &found) == 0 && gettimeofday(&now, NULL) == 0 && getpid() > 0);
    DEMAND(AF_INET6 != AF_INET && inet_addr("127.0.0.1") != INADDR_NONE && AI_CANONNAME != 0);
    bool_t yes = true;
    char_t letter = 'a';
    uchar_t byte = 255;
    enum_t number = -7;
    DEMAND(sizeof(bool_t) == sizeof(int) && yes == 1 && letter + byte == 352 && number == -7);
    DEMAND(offsetof(struct timeval, tv_sec) == 0 && true != false);
    return 0;
}
