/* See events_folder.h. */
#define _GNU_SOURCE
#include "events_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "file_limit.h"
#include "handover.h"
#include "observe.h"
#include "say.h"

enum { NAME_BYTES_MAX = 160 };

static bool are_kept;

/* One file of this rank: its name in the folder, and its descriptor once it is made. */
struct kept_file {
    char name[NAME_BYTES_MAX];
    int fd;
};

static const char *folder_asked(void)
{
    const char *folder = getenv("SAPWOOD_MPI_EVENTS_DIR");
    return folder != NULL && *folder != '\0' ? folder : NULL;
}

static void name_file(struct kept_file *file, const char *kind)
{
    const struct sapwood_header *header = &sapwood_table->header;
    snprintf(file->name, sizeof file->name, "rank-%u.%s.%u.%s", header->world_rank, header->host, header->pid, kind);
    for (char *at = file->name; *at != '\0'; at++)
        if (*at == '/')
            *at = '_';
    file->fd = -1;
}

/* Makes a file with all its room; errno, or 0. One that is there already is another process's. */
static int make_file(int folder, struct kept_file *file, uint64_t bytes)
{
    if (bytes > sapwood_file_bytes_max())
        return EFBIG;
    file->fd = openat(folder, file->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file->fd < 0)
        return errno;
    int error;
    do
        error = posix_fallocate(file->fd, 0, (off_t)bytes);
    while (error == EINTR);
    if (error != 0)
        return error;
    /* The program may use small descriptor numbers. */
    int high = fcntl(file->fd, F_DUPFD_CLOEXEC, SAPWOOD_FD_MIN);
    if (high >= 0) {
        close(file->fd);
        file->fd = high;
    }
    return 0;
}

/* As long as this process lives; see events_folder.h. */
static void lock_file(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    (void)fcntl(fd, F_SETLK, &whole);
}

static uint64_t with_text(uint64_t number, const char *text)
{
    for (; *text != '\0'; text++)
        number = (number ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return number;
}

/* What the launcher calls this run, as a number that is the same in all ranks; 0 if it has no name for it. */
static uint64_t run_number(void)
{
    const uint64_t none = UINT64_C(14695981039346656037);
    const char *space = getenv("PMIX_NAMESPACE"), *job = getenv("SLURM_JOB_ID"), *step = getenv("SLURM_STEP_ID");
    if (space != NULL)
        return with_text(none, space);
    return job != NULL && step != NULL ? with_text(with_text(with_text(none, job), "."), step) : 0;
}

static void note_run(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    sapwood_table->header.run = run_number();
    sapwood_table->header.kept_unix_ns = (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void take_back(int folder, struct kept_file *file)
{
    if (file->fd < 0)
        return;
    unlinkat(folder, file->name, 0);
    close(file->fd);
    file->fd = -1;
}

/* What is wrong with the folder is so for all ranks of a host; a lack of room is that of one. */
static void say_not_kept(const char *folder, int error)
{
    uint32_t rank = sapwood_table->header.world_rank;
    bool is_own = error == ENOSPC || error == EDQUOT || error == EEXIST;
    if (is_own || sapwood_rank_on_host(rank) == 0)
        sapwood_say("rank %u keeps no event file in '%.256s' (SAPWOOD_MPI_EVENTS_DIR): %s; its events are in memory "
                    "only",
                    rank, folder, strerror(error));
}

struct sapwood_kept_files sapwood_kept_files_make(uint64_t table_bytes, uint64_t events_bytes)
{
    struct sapwood_kept_files none = {.table = -1, .events = -1};
    const char *asked = folder_asked();
    if (asked == NULL || sapwood_table->header.is_spawned)
        return none;
    int folder = open(asked, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) {
        say_not_kept(asked, errno);
        return none;
    }
    struct kept_file table, events;
    name_file(&table, "profile");
    name_file(&events, "events");
    int error = make_file(folder, &events, events_bytes);
    if (error == 0)
        error = make_file(folder, &table, table_bytes);
    if (error != 0) {
        take_back(folder, &events);
        take_back(folder, &table);
        say_not_kept(asked, error);
    }
    close(folder);
    are_kept = error == 0;
    if (!are_kept)
        return none;
    lock_file(table.fd);
    note_run();
    return (struct sapwood_kept_files){.table = table.fd, .events = events.fd};
}

bool sapwood_are_files_kept(void)
{
    return are_kept;
}
