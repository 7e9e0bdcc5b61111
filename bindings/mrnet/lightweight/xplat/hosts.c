/*
 * Names of hosts.
 */
#include "hosts.h"

#include "xplat_lightweight/NetUtils.h"

static int is_on(const char *variable, int otherwise)
{
    const char *value = getenv(variable);
    return value == NULL ? otherwise : strcmp(value, "0") != 0;
}

static int put(const char *from, char *name)
{
    if (strlen(from) >= XPLAT_MAX_HOSTNAME_LEN) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(name, from);
    return 0;
}

int mrn_is_address(const char *text)
{
    struct in6_addr place;
    return inet_pton(AF_INET, text, &place) == 1 || inet_pton(AF_INET6, text, &place) == 1;
}

int mrn_addresses(const char *host, int flags, struct addrinfo **found)
{
    struct addrinfo wanted = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
    int error = host[0] == '\0' ? EAI_NONAME : getaddrinfo(host, NULL, &wanted, found);
    if (error == 0)
        return 0;
    if (error != EAI_SYSTEM)
        errno = EHOSTUNREACH;
    return -1;
}

int XPlat_NetUtils_FindNetworkName(char *host, char *name)
{
    struct addrinfo *found;
    if (!is_on("XPLAT_RESOLVE_HOSTS", 1))
        return put(host, name);
    int is_canonical = is_on("XPLAT_RESOLVE_CANONICAL", 0);
    if (mrn_addresses(host, is_canonical ? AI_CANONNAME : 0, &found) != 0)
        return -1;
    char text[NI_MAXHOST];
    const char *best = host;
    if (is_canonical && found->ai_canonname != NULL)
        best = found->ai_canonname;
    else if (mrn_is_address(host) && getnameinfo(found->ai_addr, found->ai_addrlen, text, sizeof text,
                                                 NULL, 0, NI_NAMEREQD) == 0)
        best = text;
    int result = put(best, name);
    freeaddrinfo(found);
    return result;
}

int XPlat_NetUtils_GetHostName(char *host, char *name)
{
    if (XPlat_NetUtils_FindNetworkName(host, name) != 0)
        return -1;
    if (!is_on("XPLAT_USE_FQDN", 0) && !mrn_is_address(name))
        name[strcspn(name, ".")] = '\0';
    return 0;
}

int XPlat_NetUtils_GetLocalHostName(char *name)
{
    if (gethostname(name, XPLAT_MAX_HOSTNAME_LEN) != 0)
        return -1;
    name[XPLAT_MAX_HOSTNAME_LEN - 1] = '\0';
    return 0;
}

int XPlat_NetUtils_GetLastError(void)
{
    return errno;
}
