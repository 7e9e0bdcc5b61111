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

#include "earlier_run.h"
#include "file_limit.h"
#include "handover.h"
#include "observe.h"
#include "say.h"

enum { NAME_BYTES_MAX = 160, REASON_BYTES_MAX = 224 };

static bool are_kept;

/* One file of this rank: its name in the folder, its length, and its descriptor once it is made. */
struct kept_file {
    char name[NAME_BYTES_MAX];
    uint64_t bytes;
    int fd;
};

/* Why a rank keeps no file; without text there is no reason. */
struct refusal {
    char text[REASON_BYTES_MAX];
    /* Of this rank alone: what is wrong with the folder is so for all ranks of a host. */
    bool is_own;
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
static int make_file(int folder, struct kept_file *file)
{
    if (file->bytes > sapwood_file_bytes_max())
        return EFBIG;
    file->fd = openat(folder, file->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file->fd < 0)
        return errno;
    int error;
    do
        error = posix_fallocate(file->fd, 0, (off_t)file->bytes);
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

static struct refusal refused_by(int error)
{
    struct refusal refusal = {.is_own = error == ENOSPC || error == EDQUOT || error == EEXIST};
    snprintf(refusal.text, sizeof refusal.text, "%s", strerror(error));
    return refusal;
}

/* What is wrong with the folder, by what `sapwood mpi --events-folder` asks of one before the program starts. */
static struct refusal folder_refused(int folder)
{
    struct refusal refusal = {.is_own = false};
    struct sapwood_earlier_file earlier;
    struct stat found;
    if (fstat(folder, &found) != 0)
        return refused_by(errno);
    if (found.st_uid != geteuid()) {
        snprintf(refusal.text, sizeof refusal.text, "it belongs to user %u, and this is user %u",
                 (unsigned)found.st_uid, (unsigned)geteuid());
        return refusal;
    }
    if ((found.st_mode & S_IWOTH) != 0) {
        snprintf(refusal.text, sizeof refusal.text,
                 "it may be written by all users (mode %o), who could put files of theirs there",
                 (unsigned)found.st_mode & 07777);
        return refusal;
    }
    int error = sapwood_earlier_file_find(folder, run_number(), &earlier);
    if (error != 0)
        return refused_by(error);
    if (earlier.kind != SAPWOOD_EARLIER_NONE) {
        refusal.is_own = earlier.kind == SAPWOOD_EARLIER_OF_RANK;
        snprintf(refusal.text, sizeof refusal.text,
                 "it holds files of an earlier run, such as '%s'; name another, or move these away", earlier.name);
    }
    return refusal;
}

static void say_not_kept(const char *folder, const struct refusal *refusal)
{
    uint32_t rank = sapwood_table->header.world_rank;
    if (refusal->is_own || sapwood_rank_on_host(rank) == 0)
        sapwood_say("rank %u keeps no event file in '%.160s' (SAPWOOD_MPI_EVENTS_DIR): %s; its events are in memory "
                    "only",
                    rank, folder, refusal->text);
}

/* Makes both files of a rank, or none; whether they are there. */
static bool make_files(const char *asked, struct kept_file *table, struct kept_file *events)
{
    int folder = open(asked, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct refusal refusal = folder < 0 ? refused_by(errno) : folder_refused(folder);
    int error = 0;
    if (refusal.text[0] == '\0')
        error = make_file(folder, events);
    if (refusal.text[0] == '\0' && error == 0)
        error = make_file(folder, table);
    if (error != 0) {
        take_back(folder, events);
        take_back(folder, table);
        refusal = refused_by(error);
    }
    if (folder >= 0)
        close(folder);
    if (refusal.text[0] != '\0')
        say_not_kept(asked, &refusal);
    return refusal.text[0] == '\0';
}

struct sapwood_kept_files sapwood_kept_files_make(uint64_t table_bytes, uint64_t events_bytes)
{
    struct sapwood_kept_files none = {.table = -1, .events = -1};
    const char *asked = folder_asked();
    if (asked == NULL || sapwood_table->header.is_spawned)
        return none;
    struct kept_file table = {.bytes = table_bytes}, events = {.bytes = events_bytes};
    name_file(&table, "profile");
    name_file(&events, "events");
    are_kept = make_files(asked, &table, &events);
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
