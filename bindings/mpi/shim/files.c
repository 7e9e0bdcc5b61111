/* See files.h. */
#define _GNU_SOURCE
#include "files.h"

#include <pthread.h>
#include <string.h>

#include "observe.h"
#include "sizes.h"

enum {
    FILES_MAX = 128,
    /* As long as names in the table may be. */
    PATH_BYTES_MAX = 255,
};

struct file {
    uint64_t handle; /* 0 where there is none */
    char path[PATH_BYTES_MAX + 1];
};

static struct file files[FILES_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The place of a file, or with 0 a free one; NULL where there is none. Callers hold the lock. */
static struct file *place_of(uint64_t handle)
{
    for (int at = 0; at < FILES_MAX; at++)
        if (files[at].handle == handle)
            return &files[at];
    return NULL;
}

/* Of a path that is too long the end is kept, which tells files apart. */
static void keep_path(struct file *file, const char *path)
{
    static const char left_out[] = "...";
    size_t length = strlen(path), begin = sizeof left_out - 1;
    if (length <= PATH_BYTES_MAX) {
        memcpy(file->path, path, length + 1);
        return;
    }
    const char *end = path + length - (PATH_BYTES_MAX - begin);
    /* Not within a letter of several bytes. */
    while (((unsigned char)*end & 0xc0) == 0x80)
        end++;
    memcpy(file->path, left_out, begin);
    memcpy(file->path + begin, end, strlen(end) + 1);
}

void sapwood_file_opened(uint64_t file, const char *path)
{
    /* One that was closed unseen may have had the handle. */
    sapwood_file_closed(file);
    pthread_mutex_lock(&lock);
    struct file *place = file == 0 ? NULL : place_of(0);
    if (place != NULL) {
        keep_path(place, path);
        place->handle = file;
    }
    pthread_mutex_unlock(&lock);
}

uint64_t sapwood_file_entered(uint64_t file)
{
    if (file == 0 || sapwood_has_name(file))
        return file;
    char path[PATH_BYTES_MAX + 1] = "";
    pthread_mutex_lock(&lock);
    const struct file *place = place_of(file);
    if (place != NULL)
        memcpy(path, place->path, sizeof path);
    pthread_mutex_unlock(&lock);
    if (*path != '\0')
        sapwood_name_window(file, path, strlen(path));
    return file;
}

void sapwood_file_closed(uint64_t file)
{
    if (file == 0)
        return;
    pthread_mutex_lock(&lock);
    struct file *place = place_of(file);
    if (place != NULL)
        place->handle = 0;
    pthread_mutex_unlock(&lock);
    sapwood_forget_name(file);
}
