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
    bool is_left_out; /* its name has found no room in the table; this is not tried again with each call */
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

/* What is known of a file, in the table too, holds no more. Callers hold the lock. */
static void forget(uint64_t file, struct file *place)
{
    if (place != NULL)
        place->handle = 0;
    sapwood_forget_name(file);
}

void sapwood_file_opened(uint64_t file, const char *path)
{
    if (file == 0)
        return;
    pthread_mutex_lock(&lock);
    /* The handle may have been that of a file that was closed unseen. */
    forget(file, place_of(file));
    struct file *place = place_of(0);
    if (place != NULL) {
        keep_path(place, path);
        place->is_left_out = false;
        place->handle = file;
    }
    pthread_mutex_unlock(&lock);
}

/* Puts the name of a file back into the table. Callers hold the lock. */
static void name_file(struct file *file)
{
    if (!file->is_left_out && !sapwood_has_name(file->handle))
        file->is_left_out = !sapwood_name_handle(file->handle, file->path, strlen(file->path));
}

uint64_t sapwood_file_entered(uint64_t file)
{
    if (file == 0 || sapwood_has_name(file))
        return file;
    pthread_mutex_lock(&lock);
    struct file *place = place_of(file);
    if (place != NULL)
        name_file(place);
    pthread_mutex_unlock(&lock);
    return file;
}

uint64_t sapwood_file_closing(uint64_t file)
{
    if (file == 0)
        return 0;
    uint64_t closing = sapwood_number_of_none();
    pthread_mutex_lock(&lock);
    struct file *place = place_of(file);
    if (place != NULL) {
        name_file(place);
        place->handle = 0;
        sapwood_name_moved(file, closing);
    }
    pthread_mutex_unlock(&lock);
    return closing;
}

void sapwood_file_closed(uint64_t closing)
{
    sapwood_forget_name(closing);
}

void sapwood_file_forget(uint64_t file)
{
    if (file == 0)
        return;
    pthread_mutex_lock(&lock);
    forget(file, place_of(file));
    pthread_mutex_unlock(&lock);
}
