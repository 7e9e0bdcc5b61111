/* Names in the abstract socket space; see presence.h. The kernel removes a name
 * with its process, so that nothing is left behind however a rank ends. */
#define _GNU_SOURCE
#include "presence.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "library.h"
#include "segment.h"
#include "settings.h"

static int announced = -1;
/* Asks for other names. It is opened in advance, so that a rank without free descriptors still
 * gets the same answers as the others. */
static int asker = -1;
static int announced_rank = -1;
static uint64_t job;

static int number_in(const char *name)
{
    const char *text = getenv(name);
    if (text == NULL || *text == '\0')
        return -1;
    char *end = NULL;
    long value = strtol(text, &end, 10);
    return *end == '\0' && value >= 0 && value < INT32_MAX ? (int)value : -1;
}

#if defined(SAPWOOD_FOR_OPENMPI)
static uint64_t digest_of(const char *text, uint64_t digest)
{
    for (; text != NULL && *text != '\0'; text++)
        digest = (digest ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return digest;
}

/* PMIx tells both, whether mpirun or Slurm started the job. */
static bool job_found(void)
{
    const char *space = getenv("PMIX_NAMESPACE");
    announced_rank = number_in("PMIX_RANK");
    if (space == NULL || announced_rank < 0)
        return false;
    job = digest_of(getenv("PMIX_SERVER_URI2"), digest_of(space, UINT64_C(14695981039346656037)));
    return true;
}
#else
/* The process at the other end of PMI's socket pair, the launcher's proxy on this
 * host, stands for the job. */
static bool job_found(void)
{
    int fd = number_in("PMI_FD");
    struct ucred peer;
    socklen_t length = sizeof peer;
    announced_rank = number_in("PMI_RANK");
    if (fd < 0 || announced_rank < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
        return false;
    job = (uint64_t)peer.pid;
    return true;
}
#endif

static socklen_t name_of(int rank, struct sockaddr_un *address)
{
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    int length = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "sapwood-bypass-%d-%d-%x-%u-%llx-%d",
                          SAPWOOD_ABI, BYPASS_VERSION, bypass_settings_digest(), (unsigned)getuid(),
                          (unsigned long long)job, rank);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

bool bypass_presence_announce(void)
{
    if (!job_found())
        return false;
    struct sockaddr_un address;
    socklen_t length = name_of(announced_rank, &address);
    announced = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    asker = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (announced >= 0 && asker >= 0 && bind(announced, (struct sockaddr *)&address, length) == 0)
        return true;
    bypass_presence_withdraw();
    return false;
}

void bypass_presence_withdraw(void)
{
    if (announced >= 0)
        close(announced);
    if (asker >= 0)
        close(asker);
    announced = asker = -1;
}

int bypass_presence_rank(void)
{
    return announced_rank;
}

bool bypass_presence_of(int world_rank)
{
    struct sockaddr_un address;
    socklen_t length = name_of(world_rank, &address);
    return connect(asker, (struct sockaddr *)&address, length) == 0;
}
