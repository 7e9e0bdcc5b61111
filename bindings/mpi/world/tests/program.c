/* What a program can see of its world. It prints the same lines whether its world is
 * the library's own or a divided one: the test compares them.
 *
 *   program FILE SECONDS [FILES]    FILE is made, read and removed; each rank sleeps SECONDS,
 *                                   and waits until each of FILES is there
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <mpi.h>

static int rank, size;

static void say(const char *what, long value)
{
    long values[64] = {0};
    MPI_Gather(&value, 1, MPI_LONG, values, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    if (rank != 0)
        return;
    printf("%s:", what);
    for (int i = 0; i < size; i++)
        printf(" %ld", values[i]);
    printf("\n");
    fflush(stdout);
}

static char deleted[16];

/* Called for the copies, and at last for the world itself, where nothing may be called any more. */
static int on_delete(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)extra;
    strncat(deleted, value, sizeof deleted - strlen(deleted) - 1);
    if (rank == 0)
        printf("deleted: %s\n", deleted);
    fflush(stdout);
    return MPI_SUCCESS;
}

/* The first of all in MPI_Finalize, while the world still works as one. */
static int on_end(MPI_Comm comm, int key, void *value, void *extra)
{
    int all = 0, one = 1;
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (all != size)
        printf("a call-back of MPI_COMM_SELF counts %d ranks of %d\n", all, size);
    return on_delete(comm, key, value, extra);
}

static void attributes(void)
{
    int *value, is_set, key;
    int keys[] = {MPI_TAG_UB, MPI_WTIME_IS_GLOBAL, MPI_LASTUSEDCODE};
    for (int i = 0; i < 3; i++) {
        MPI_Comm_get_attr(MPI_COMM_WORLD, keys[i], &value, &is_set);
        say("predefined", is_set ? *value : -1);
    }
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, on_delete, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, "w");
    MPI_Comm_get_attr(MPI_COMM_WORLD, key, &value, &is_set);
    say("own", is_set && strcmp((char *)value, "w") == 0);
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_get_attr(copy, key, &value, &is_set);
    say("copied", is_set);
    MPI_Comm_delete_attr(copy, key);
    MPI_Comm_free(&copy);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_end, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, "s");
}

static void names(void)
{
    char name[MPI_MAX_OBJECT_NAME];
    int length, is_inter;
    MPI_Comm_get_name(MPI_COMM_WORLD, name, &length);
    say("first name", strcmp(name, "MPI_COMM_WORLD"));
    MPI_Comm_set_name(MPI_COMM_WORLD, "mine");
    MPI_Comm_get_name(MPI_COMM_WORLD, name, &length);
    say("second name", strcmp(name, "mine"));
    MPI_Comm_test_inter(MPI_COMM_WORLD, &is_inter);
    say("inter", is_inter);
}

static void groups(void)
{
    MPI_Group world, odd, back;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    int members, number, numbers[64], translated[64], outcome, count = 0;
    MPI_Group_size(world, &members);
    MPI_Group_rank(world, &number);
    say("group", members * 100 + number);
    for (int i = 1; i < size; i += 2)
        numbers[count++] = i;
    MPI_Group_incl(world, count, numbers, &odd);
    MPI_Comm comm;
    MPI_Comm_create(MPI_COMM_WORLD, odd, &comm);
    int inner = -1;
    if (comm != MPI_COMM_NULL) {
        MPI_Comm_rank(comm, &inner);
        MPI_Comm_group(comm, &back);
        MPI_Group_translate_ranks(back, 1, &inner, world, translated);
        inner = translated[0];
        MPI_Group_free(&back);
        MPI_Comm_free(&comm);
    }
    say("odd", inner);
    MPI_Comm_create_group(MPI_COMM_WORLD, odd, 3, &comm);
    say("made by its group", comm != MPI_COMM_NULL);
    if (comm != MPI_COMM_NULL)
        MPI_Comm_free(&comm);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_compare(MPI_COMM_WORLD, comm, &outcome);
    say("congruent", outcome == MPI_CONGRUENT);
    MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_WORLD, &outcome);
    say("identical", outcome == MPI_IDENT);
    MPI_Comm_free(&comm);
    MPI_Group_free(&odd);
    MPI_Group_free(&world);
}

static int handled;

static void on_error(MPI_Comm *comm, int *code, ...)
{
    (void)code;
    int number;
    MPI_Comm_rank(*comm, &number);
    handled += 1 + number;
}

static void errors(void)
{
    MPI_Errhandler handler, before;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
    say("fatal at first", before == MPI_ERRORS_ARE_FATAL);
    MPI_Comm_create_errhandler(on_error, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    int value = 0, error_class;
    int code = MPI_Send(&value, 1, MPI_INT, size, 0, MPI_COMM_WORLD);
    MPI_Error_class(code, &error_class);
    say("no such rank", error_class == MPI_ERR_RANK);
    say("handled", handled);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    /* It belongs to no communicator. */
    code = MPI_Type_contiguous(-1, MPI_INT, &(MPI_Datatype){0});
    say("an error of no communicator returns", code != MPI_SUCCESS);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, before);
    MPI_Errhandler_free(&handler);
    MPI_Errhandler_free(&before);
}

static void windows(void)
{
    static int own;
    int one = rank + 1, *memory;
    MPI_Win window;
    MPI_Win_create(&own, sizeof own, sizeof own, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    MPI_Accumulate(&one, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, MPI_SUM, window);
    MPI_Win_fence(0, window);
    say("window", own);
    MPI_Group group;
    int members;
    MPI_Win_get_group(window, &group);
    MPI_Group_size(group, &members);
    say("its group", members);
    MPI_Group_free(&group);
    MPI_Win_free(&window);
    MPI_Comm host;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_size(host, &members);
    say("of this host", members);
    MPI_Win_allocate_shared(sizeof own, sizeof own, MPI_INFO_NULL, host, &memory, &window);
    MPI_Win_free(&window);
    MPI_Comm_free(&host);
}

static void files(const char *path)
{
    MPI_File file;
    MPI_Offset bytes = -1;
    MPI_Group group;
    int members, seen = -1, next = (rank + 1) % size;
    if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                      &file) != MPI_SUCCESS) {
        say("file", -1);
        return;
    }
    MPI_File_write_at_all(file, (MPI_Offset)sizeof rank * rank, &rank, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(file);
    MPI_File_get_size(file, &bytes);
    MPI_File_read_at_all(file, (MPI_Offset)sizeof rank * next, &seen, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_get_group(file, &group);
    MPI_Group_size(group, &members);
    MPI_Group_free(&group);
    say("file bytes", (long)bytes);
    say("file", seen * 100 + members);
    MPI_File_close(&file);
}

static void topologies(void)
{
    int dimensions[1] = {0}, periods[1] = {1}, left, right, count = 0;
    MPI_Comm line, graph;
    MPI_Dims_create(size, 1, dimensions);
    MPI_Cart_create(MPI_COMM_WORLD, 1, dimensions, periods, 0, &line);
    MPI_Cart_shift(line, 0, 1, &left, &right);
    say("shift", left * 100 + right);
    MPI_Comm_free(&line);
    int next = (rank + 1) % size, before = (rank + size - 1) % size, one = 1, kind;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, &one, 1, &next, &one, MPI_INFO_NULL, 0,
                                   &graph);
    MPI_Topo_test(graph, &kind);
    int seen = -1, weighted;
    MPI_Neighbor_alltoall(&rank, 1, MPI_INT, &seen, 1, MPI_INT, graph);
    MPI_Dist_graph_neighbors_count(graph, &count, &count, &weighted);
    say("graph", seen * 100 + count * 10 + (kind == MPI_DIST_GRAPH));
    MPI_Comm_free(&graph);
    MPI_Topo_test(MPI_COMM_WORLD, &kind);
    say("no topology", kind == MPI_UNDEFINED);
}

static void messages(void)
{
    int value = rank, sum = 0, from = 0, blocks[64], flag = 0;
    MPI_Request request;
    MPI_Status status;
    MPI_Isend(&value, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, &request);
    for (int i = 0; rank == 0 && i < size; i++) {
        MPI_Probe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &status);
        MPI_Recv(&value, 1, MPI_INT, status.MPI_SOURCE, 5, MPI_COMM_WORLD, &status);
        from += status.MPI_SOURCE;
        sum += value;
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    say("any source", sum * 100 + from);
    for (int i = 0; i < size; i++)
        blocks[i] = rank * 10 + i;
    MPI_Alltoall(MPI_IN_PLACE, 1, MPI_INT, blocks, 1, MPI_INT, MPI_COMM_WORLD);
    say("alltoall", blocks[size - 1]);
    MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &request);
    while (!flag)
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    say("iallreduce", sum);
    MPI_Comm half, other;
    MPI_Comm_split(MPI_COMM_WORLD, rank < size / 2, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank < size / 2 ? size / 2 : 0, 9, &other);
    MPI_Comm_remote_size(other, &sum);
    say("remote", sum);
    MPI_Comm merged;
    MPI_Intercomm_merge(other, rank < size / 2, &merged);
    MPI_Comm_rank(merged, &sum);
    say("merged", sum);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&other);
    MPI_Comm_free(&half);
    MPI_Comm parent;
    MPI_Comm_get_parent(&parent);
    say("no parent", parent == MPI_COMM_NULL);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    say("rank", rank);
    say("size", size);
    attributes();
    names();
    groups();
    errors();
    windows();
    files(argv[1]);
    topologies();
    messages();
    double seconds = atof(argv[2]);
    struct timespec time = {(long)seconds, (long)((seconds - (double)(long)seconds) * 1e9)};
    nanosleep(&time, NULL);
    for (int i = 3; i < argc; i++)
        while (access(argv[i], F_OK) != 0)
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
