/* Names of communicators that are freed, and of more at once than find room:
 *
 *     names CASE COUNT
 *
 *   passing    COUNT times a communicator with a name of its own, which is used and freed; then on one that
 *              is named "last" the last rank does not come to a barrier: it waits for a message that no rank
 *              sends; never ends
 *   windows    the same of windows; the last one is a communicator again
 *   living     COUNT communicators at once, each with a name of its own
 *   files      the same as living, and several calls on a file while there is no room for its path
 *   past       the same as files, and the file is closed past the shim
 *   alike      COUNT communicators at once, all with one name
 *   unseen     a window that is named "gone" and freed past the shim, and one without a name; MPI_COMM_WORLD is
 *              named "same" if the second one has the handle of the first, and "another" if not */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;
static int (*close_file)(MPI_File *) = MPI_File_close;

static void passing(int count)
{
    for (int i = 0; i < count; i++) {
        MPI_Comm copy;
        char name[32];
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        snprintf(name, sizeof name, "step %d", i);
        MPI_Comm_set_name(copy, name);
        MPI_Barrier(copy);
        MPI_Comm_free(&copy);
    }
}

static void windows(int count)
{
    static int part;
    for (int i = 0; i < count; i++) {
        MPI_Win window;
        char name[32];
        MPI_Win_create(&part, sizeof part, sizeof part, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
        snprintf(name, sizeof name, "window %d", i);
        MPI_Win_set_name(window, name);
        MPI_Win_free(&window);
    }
}

static void unseen(void)
{
    static int part;
    MPI_Win window, first;
    MPI_Win_create(&part, sizeof part, sizeof part, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_set_name(window, "gone");
    first = window;
    PMPI_Win_free(&window);
    MPI_Win_create(&part, sizeof part, sizeof part, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Comm_set_name(MPI_COMM_WORLD, window == first ? "same" : "another");
    /* What the shim tells of the second one stays until the end. */
    PMPI_Win_free(&window);
}

static void miss_the_last(void)
{
    MPI_Comm last;
    int word;
    MPI_Comm_dup(MPI_COMM_WORLD, &last);
    MPI_Comm_set_name(last, "last");
    if (rank == size - 1)
        MPI_Recv(&word, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Barrier(last);
}

static void call_on_file(void)
{
    const char *folder = getenv("TMPDIR");
    /* Longer than what names of communicators leave at the ends of parts of the room. */
    char path[4096];
    snprintf(path, sizeof path, "%s/sapwood-test-of-names-XXXXXX", folder == NULL ? "/tmp" : folder);
    int descriptor = mkstemp(path);
    MPI_File file;
    MPI_Offset bytes;
    if (descriptor < 0 || MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 3);
    close(descriptor);
    /* Each rank opens a file of its own. */
    unlink(path);
    for (int i = 0; i < 9; i++)
        MPI_File_get_size(file, &bytes);
    close_file(&file);
}

/* Makes them, does this, if there is anything to do, and frees them. */
static void living(int count, const char *format, void (*work)(void))
{
    MPI_Comm *all = calloc((size_t)count, sizeof *all);
    for (int i = 0; i < count; i++) {
        char name[64];
        MPI_Comm_dup(MPI_COMM_WORLD, &all[i]);
        snprintf(name, sizeof name, format, i);
        MPI_Comm_set_name(all[i], name);
    }
    if (work != NULL)
        work();
    for (int i = 0; i < count; i++)
        MPI_Comm_free(&all[i]);
    free(all);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 3)
        MPI_Abort(MPI_COMM_WORLD, 2);
    if (strcmp(argv[1], "passing") == 0)
        passing(atoi(argv[2]));
    if (strcmp(argv[1], "windows") == 0)
        windows(atoi(argv[2]));
    if (strcmp(argv[1], "past") == 0)
        close_file = PMPI_File_close;
    if (strcmp(argv[1], "living") == 0)
        living(atoi(argv[2]), "a communicator of its own name, number %d", NULL);
    else if (strcmp(argv[1], "files") == 0 || strcmp(argv[1], "past") == 0)
        living(atoi(argv[2]), "a communicator of its own name, number %d", call_on_file);
    else if (strcmp(argv[1], "unseen") == 0)
        unseen();
    else if (strcmp(argv[1], "alike") == 0)
        living(atoi(argv[2]), "a communicator of the same name as all others", NULL);
    else
        miss_the_last();
    MPI_Finalize();
    return 0;
}
