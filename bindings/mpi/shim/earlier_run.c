/* See earlier_run.h. */
#define _GNU_SOURCE
#include "earlier_run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "observe.h"
#include "table.h"

/* Each rank looks at this many tables, and at the names of this many files of ranks, at most, so that many ranks do not
 * load a file system with all pairs. */
enum { TABLES_MAX = 64, NAMES_MAX = 512, STAT_BYTES_MAX = 1024, STARTED_FIELD = 22, PREFIX_BYTES_MAX = 32 };

#define SECOND_NS UINT64_C(1000000000)
/* By how much the clocks of hosts may differ. */
#define CLOCKS_APART_NS (10 * SECOND_NS)

static uint64_t nanoseconds_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

/* When the system started this process, in nanoseconds since 1970; 0 if that is not known. */
static uint64_t process_start(void)
{
    char text[STAT_BYTES_MAX];
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (bytes <= 0)
        return 0;
    text[bytes] = '\0';
    /* The second field is a name in parentheses, which may have spaces. */
    const char *at = strrchr(text, ')');
    for (int field = 2; at != NULL && field < STARTED_FIELD; field++) {
        at = strchr(at, ' ');
        at = at == NULL ? NULL : at + 1;
    }
    long per_second = sysconf(_SC_CLK_TCK);
    if (at == NULL || per_second <= 0)
        return 0;
    uint64_t start = strtoull(at, NULL, 10) * (SECOND_NS / (uint64_t)per_second);
    uint64_t up = nanoseconds_of(CLOCK_BOOTTIME);
    return start <= up ? nanoseconds_of(CLOCK_REALTIME) - (up - start) : 0;
}

/* What is known of the run of this rank. */
struct own_run {
    uint64_t run;
    uint64_t started_unix_ns;
};

static bool is_of_another_run(int folder, const char *name, const struct own_run *own)
{
    struct sapwood_header header;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t bytes = fd < 0 ? -1 : pread(fd, &header, sizeof header, 0);
    if (fd >= 0)
        close(fd);
    if (bytes != (ssize_t)sizeof header || memcmp(header.magic, SAPWOOD_TABLE_MAGIC, sizeof header.magic) != 0)
        return false;
    if (own->run != 0 && header.run != 0)
        return own->run != header.run;
    bool is_here = strncmp(header.host, sapwood_table->header.host, sizeof header.host) == 0;
    uint64_t until = header.kept_unix_ns + (is_here ? 0 : CLOCKS_APART_NS);
    return header.kept_unix_ns != 0 && until < own->started_unix_ns;
}

static bool ends_with(const char *name, const char *end)
{
    size_t length = strlen(name), end_length = strlen(end);
    return length >= end_length && strcmp(name + length - end_length, end) == 0;
}

static void take(struct sapwood_earlier_file *found, enum sapwood_earlier_kind kind, const char *name)
{
    found->kind = kind;
    snprintf(found->name, sizeof found->name, "%.120s", name);
}

int sapwood_earlier_file_find(int folder, uint64_t run, struct sapwood_earlier_file *found)
{
    found->kind = SAPWOOD_EARLIER_NONE;
    int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (again < 0)
        return errno;
    DIR *entries = fdopendir(again);
    if (entries == NULL) {
        int error = errno;
        close(again);
        return error;
    }
    struct own_run own = {.run = run, .started_unix_ns = process_start()};
    char prefix[PREFIX_BYTES_MAX];
    snprintf(prefix, sizeof prefix, "rank-%u.", sapwood_table->header.world_rank);
    int tables = 0, names = 0;
    for (struct dirent *entry; found->kind != SAPWOOD_EARLIER_OF_RUN && names < NAMES_MAX
                               && (entry = readdir(entries)) != NULL;) {
        const char *name = entry->d_name;
        bool is_table = ends_with(name, ".profile");
        if (strncmp(name, "rank-", strlen("rank-")) != 0 || (!is_table && !ends_with(name, ".events")))
            continue;
        names++;
        if (is_table && tables++ < TABLES_MAX && is_of_another_run(folder, name, &own))
            take(found, SAPWOOD_EARLIER_OF_RUN, name);
        else if (strncmp(name, prefix, strlen(prefix)) == 0)
            take(found, SAPWOOD_EARLIER_OF_RANK, name);
    }
    closedir(entries);
    return 0;
}
