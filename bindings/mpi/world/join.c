/* Where the tree is, on its way from the front-end's host to the ranks of the tool; see world.h.
 *
 * The front-end makes a folder of mode 0700 on its host before it starts the program, and puts
 * the join file and the key's file there once the tree takes leaves. The first rank of the tool
 * that sees the folder waits for them and sends both to the others, so that hosts need no file
 * system in common. It sends one message to each, in any case: an empty one if the program has
 * ended before, or where the files cannot be read. At the other end they are files in memory.
 *
 * Only that the files are not there yet is looked at again. Every other failure is final, and so is
 * that they are not there once the folder has gone: the front-end removes it when it ends.
 *
 *   message   the key's line, and then the lines of the join file
 */
#define _GNU_SOURCE
#include "world.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "say.h"

enum {
    JOIN_TAG = 8,
    /* Some hundred bytes for each process that has leaves. */
    TEXT_BYTES_MAX = 1 << 20,
    /* Behind the numbers at which the command finds them. */
    DESCRIPTOR_MIN = 16,
    LAST_PAUSE_NS = 10000000,
    /* In a line of the join file: parent, address, ranks, encryption. */
    WORDS_BEFORE_KEY = 4,
};

struct text {
    char *bytes;
    size_t length;
};

/* Whether the folder of the join file is on this host, and our user's alone: others know its
 * name, and could make one on a host where the front-end has none. */
static bool sees_folder(void)
{
    const char *path = getenv("SAPWOOD_JOIN");
    const char *end = path != NULL ? strrchr(path, '/') : NULL;
    if (end == NULL)
        return false;
    struct stat about;
    char *folder = strndup(path, (size_t)(end - path));
    bool is_own = folder != NULL && lstat(folder, &about) == 0 && S_ISDIR(about.st_mode) &&
                  about.st_uid == geteuid() && (about.st_mode & 077) == 0;
    free(folder);
    return is_own;
}

void sapwood_world_join_open(struct sapwood_world_join *join, MPI_Comm all)
{
    *join = (struct sapwood_world_join){.all = all, .points = -1, .key = -1};
    SAPWOOD_BEHIND(PMPI_Comm_rank)(all, &join->own);
    int candidate = sees_folder() ? join->own : INT_MAX;
    SAPWOOD_BEHIND(PMPI_Allreduce)(&candidate, &join->reader, 1, SAPWOOD_WORLD_HANDLE(MPI_INT, ompi_mpi_int),
                                   SAPWOOD_WORLD_HANDLE(MPI_MIN, ompi_mpi_op_min), all);
    if (join->reader != INT_MAX)
        return;
    join->reader = -1;
    join->is_over = true;
    if (join->own == 0)
        sapwood_say("no rank of the tool sees the folder of '%.200s', which is on the host of 'sapwood mpi'; the "
                    "program runs on unobserved",
                    getenv("SAPWOOD_JOIN") != NULL ? getenv("SAPWOOD_JOIN") : "");
}

/* Appends a file. Gives 0, or what is wrong; an interrupted call is made again. */
static int append_file(struct text *text, const char *path)
{
    int fd;
    do
        fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return errno;
    ssize_t count;
    do {
        count = read(fd, text->bytes + text->length, TEXT_BYTES_MAX - text->length);
        if (count > 0)
            text->length += (size_t)count;
    } while (count > 0 || (count < 0 && errno == EINTR));
    int failure = count < 0 ? errno : 0;
    close(fd);
    /* Where the room is full there may be more. */
    return failure == 0 && text->length == TEXT_BYTES_MAX ? EFBIG : failure;
}

/* Reads the message out of the files. The join file comes after the key's. Gives 0, ENOENT while they are not there,
 * or what is wrong. */
static int read_files(struct text *text)
{
    char key[PATH_MAX];
    const char *path = getenv("SAPWOOD_JOIN");
    if (access(path, F_OK) != 0)
        return errno;
    snprintf(key, sizeof key, "%s.key", path);
    text->bytes = malloc(TEXT_BYTES_MAX);
    if (text->bytes == NULL)
        return ENOMEM;
    int failure = append_file(text, key);
    return failure != 0 ? failure : append_file(text, path);
}

static void forget(struct text *text)
{
    if (text->bytes != NULL)
        explicit_bzero(text->bytes, text->length);
    free(text->bytes);
    *text = (struct text){NULL, 0};
}

/* Sends it to all others, which may look for it after a while: at the same time. */
static void send_to_others(struct sapwood_world_join *join, const struct text *text)
{
    int size, sent = 0;
    SAPWOOD_BEHIND(PMPI_Comm_size)(join->all, &size);
    MPI_Datatype byte = SAPWOOD_WORLD_HANDLE(MPI_BYTE, ompi_mpi_byte);
    MPI_Request *requests = calloc((size_t)size, sizeof *requests);
    for (int other = 0; other < size; other++) {
        if (other == join->own)
            continue;
        if (requests != NULL)
            SAPWOOD_BEHIND(PMPI_Isend)(text->bytes, (int)text->length, byte, other, JOIN_TAG, join->all,
                                       &requests[sent++]);
        else
            SAPWOOD_BEHIND(PMPI_Send)(text->bytes, (int)text->length, byte, other, JOIN_TAG, join->all);
    }
    while (sent > 0)
        SAPWOOD_BEHIND(PMPI_Wait)(&requests[--sent], MPI_STATUS_IGNORE);
    free(requests);
    join->is_over = true;
}

/* Reads the files and sends them to the others, once they are there. Where they cannot be read the others wait no
 * longer: they get an empty message. */
static bool pass_on(struct sapwood_world_join *join, struct text *text)
{
    int failure = read_files(text);
    if (failure == ENOENT && sees_folder())
        return false;
    if (failure != 0) {
        forget(text);
        sapwood_say("the join file '%.200s', or its key, cannot be read: %s; the program runs on unobserved",
                    getenv("SAPWOOD_JOIN"), strerror(failure));
    }
    send_to_others(join, text);
    return true;
}

/* Receives it, if it has come. */
static bool receive(struct sapwood_world_join *join, struct text *text)
{
    int has_come = 0, length = 0;
    MPI_Status status;
    SAPWOOD_BEHIND(PMPI_Iprobe)(join->reader, JOIN_TAG, join->all, &has_come, &status);
    if (!has_come)
        return false;
    MPI_Datatype byte = SAPWOOD_WORLD_HANDLE(MPI_BYTE, ompi_mpi_byte);
    SAPWOOD_BEHIND(PMPI_Get_count)(&status, byte, &length);
    text->bytes = malloc((size_t)length + 1);
    /* Without memory it stays where it is. */
    if (text->bytes == NULL)
        return false;
    SAPWOOD_BEHIND(PMPI_Recv)(text->bytes, length, byte, join->reader, JOIN_TAG, join->all, MPI_STATUS_IGNORE);
    text->length = (size_t)length;
    join->is_over = true;
    return true;
}

static bool write_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t count = write(fd, bytes, length);
        if (count < 0)
            return false;
        bytes += count;
        length -= (size_t)count;
    }
    return true;
}

/* A file in memory that only this user may read, as the key's has to be; -1 for none. */
static int memory_file(const char *name)
{
    int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0)
        return -1;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, DESCRIPTOR_MIN);
    close(fd);
    if (high >= 0)
        fchmod(high, S_IRUSR | S_IWUSR);
    return high;
}

/* Writes the lines of a join file (crates/sapwood/src/attach_file.rs), whose last word is the
 * path of the key, with the path that the key has for the command. */
static bool write_points(int fd, const char *line, const char *end)
{
    static const char key[] = SAPWOOD_WORLD_KEY_PATH "\n";
    while (line < end) {
        const char *line_end = memchr(line, '\n', (size_t)(end - line));
        if (line_end == NULL)
            return false;
        const char *word = line;
        for (int words = 0; words < WORDS_BEFORE_KEY && word != NULL; words++) {
            word = memchr(word, ' ', (size_t)(line_end - word));
            word = word != NULL ? word + 1 : NULL;
        }
        if (word == NULL || !write_all(fd, line, (size_t)(word - line)) || !write_all(fd, key, sizeof key - 1))
            return false;
        line = line_end + 1;
    }
    return true;
}

/* Makes the descriptors out of a message. */
static bool unpack(struct sapwood_world_join *join, const struct text *text)
{
    const char *end = text->bytes + text->length;
    const char *key_end = memchr(text->bytes, '\n', text->length);
    join->key = memory_file("sapwood-key");
    join->points = memory_file("sapwood-join");
    bool is_whole = key_end != NULL && join->key >= 0 && join->points >= 0 &&
                    write_all(join->key, text->bytes, (size_t)(key_end + 1 - text->bytes)) &&
                    write_points(join->points, key_end + 1, end);
    if (!is_whole)
        sapwood_say("a tool rank cannot read where the tree is; its ranks run on unobserved");
    return is_whole;
}

bool sapwood_world_join_look(struct sapwood_world_join *join)
{
    struct text text = {NULL, 0};
    if (join->is_over)
        return false;
    bool has_come = join->own == join->reader ? pass_on(join, &text) : receive(join, &text);
    bool is_there = has_come && text.length > 0 && unpack(join, &text);
    forget(&text);
    return is_there;
}

void sapwood_world_join_close(struct sapwood_world_join *join)
{
    struct text text = {NULL, 0};
    if (!join->is_over && join->own == join->reader)
        send_to_others(join, &text);
    while (!join->is_over && !receive(join, &text))
        nanosleep(&(struct timespec){.tv_nsec = LAST_PAUSE_NS}, NULL);
    forget(&text);
}
