/*
 * What the system has that every header of MRNet brings in by itself, in both languages.
 */
#ifndef XPLAT_LIGHTWEIGHT_TYPES_UNIX_H
#define XPLAT_LIGHTWEIGHT_TYPES_UNIX_H

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <unistd.h>

typedef int XPlat_Socket;
typedef uint16_t XPlat_Port;

/* Directives for size_t and ssize_t. */
#ifndef PRIszt
#define PRIszt "zu"
#define PRIsszt "zd"
#endif

/* Room for a name of a host, and for a path, with the byte that ends it. */
#ifndef XPLAT_MAX_HOSTNAME_LEN
#define XPLAT_MAX_HOSTNAME_LEN 256
#endif
#ifndef XPLAT_PATH_MAX_LEN
#define XPLAT_PATH_MAX_LEN 257
#endif

#endif
