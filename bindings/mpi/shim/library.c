/* Symbol look-up and the check of the ABI; see library.h. */
#define _GNU_SOURCE
#include "library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"
#include "status.h"

struct sapwood_library sapwood_library;

/* The bypass uses this file too and has another name. */
#ifndef SAPWOOD_SHIM_NAME
#define SAPWOOD_SHIM_NAME "libsapwood-mpi"
#endif

enum { LIBRARIES_MAX = 16, PATH_BYTES_MAX = 512 };

struct library_paths {
    char paths[LIBRARIES_MAX][PATH_BYTES_MAX];
    int count;
};

static bool is_mpi(const struct dl_phdr_info *info)
{
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *file = slash == NULL ? info->dlpi_name : slash + 1;
    return strncmp(file, "libmpi", 6) == 0;
}

static int note_library(struct dl_phdr_info *info, size_t size, void *argument)
{
    (void)size;
    struct library_paths *found = argument;
    if (is_mpi(info) && strlen(info->dlpi_name) < PATH_BYTES_MAX && found->count < LIBRARIES_MAX)
        strcpy(found->paths[found->count++], info->dlpi_name);
    return 0;
}

static int stop_at_library(struct dl_phdr_info *info, size_t size, void *argument)
{
    (void)size;
    (void)argument;
    return is_mpi(info);
}

bool sapwood_is_mpi_loaded(void)
{
    return dl_iterate_phdr(stop_at_library, NULL) != 0;
}

/* Looks into libraries that were loaded outside the global scope. They are
 * listed first and opened afterwards: opening while listing could deadlock. */
void *sapwood_symbol_in_loaded_libraries(const char *name)
{
    struct library_paths *found = calloc(1, sizeof *found);
    if (found == NULL)
        return NULL;
    dl_iterate_phdr(note_library, found);
    void *symbol = NULL;
    for (int i = 0; i < found->count && symbol == NULL; i++) {
        void *library = dlopen(found->paths[i], RTLD_LAZY | RTLD_NOLOAD);
        if (library == NULL)
            continue;
        symbol = dlsym(library, name);
        dlclose(library);
    }
    free(found);
    return symbol;
}

void *sapwood_symbol(const char *name)
{
    void *symbol = dlsym(RTLD_DEFAULT, name);
    return symbol != NULL ? symbol : sapwood_symbol_in_loaded_libraries(name);
}

static int absent_function(void)
{
    sapwood_say("the program called an MPI function that its MPI library does not have");
    return MPI_ERR_OTHER;
}

void *sapwood_next(const char *name)
{
    void *next = sapwood_symbol(name);
    return next != NULL ? next : (void *)(uintptr_t)absent_function;
}

static bool is_mpich(const char *version)
{
    return strstr(version, "Open MPI") == NULL &&
           (strstr(version, "MPICH") != NULL || strstr(version, "MVAPICH") != NULL ||
            strstr(version, "Intel(R) MPI") != NULL);
}

/* Whether the library's handles are those of the standard's ABI. One library of an MPI may say -1,
 * while another one of the same MPI and version says 1. */
static bool has_standard_abi(void)
{
    int major = 0, minor = 0;
    int (*ask)(int *, int *) = (int (*)(int *, int *))sapwood_symbol("PMPI_Abi_get_version");
    return ask != NULL && ask(&major, &minor) == 0 && major > 0;
}

/* Of the program's library; 0 if it is of none that is known. */
static int abi_of_program(const char *version)
{
    if (has_standard_abi())
        return SAPWOOD_ABI_STANDARD;
    if (strstr(version, "Open MPI") != NULL)
        return SAPWOOD_ABI_OPENMPI;
    return is_mpich(version) ? SAPWOOD_ABI_MPICH : 0;
}

/* Gives the library's version, and ends the program if it is of another ABI. */
static void refuse_other_abi(char *version)
{
    static const char *const names[] = {NULL, "Open MPI", "MPICH", "the MPI standard's ABI"};
    static const char *const files[] = {NULL, "openmpi", "mpich", "abi"};
    int length = 0;
    int (*ask)(char *, int *) = (int (*)(char *, int *))sapwood_symbol("PMPI_Get_library_version");
    if (ask == NULL || ask(version, &length) != 0)
        return;
    int abi = abi_of_program(version);
    if (abi == SAPWOOD_ABI)
        return;
    version[strcspn(version, "\n,")] = '\0';
    for (char *tab = version; (tab = strchr(tab, '\t')) != NULL;)
        *tab = ' ';
    const char *by = abi == SAPWOOD_ABI_STANDARD ? " by the MPI standard's ABI" : "";
    bool has_file = abi != 0 && (abi != SAPWOOD_ABI_STANDARD || strcmp(SAPWOOD_SHIM_NAME, "libsapwood-mpi") == 0);
    if (!has_file)
        sapwood_say("this program runs on %.60s%s, for which there is no %s; the preloaded one is for %s", version, by,
                    SAPWOOD_SHIM_NAME, names[SAPWOOD_ABI]);
    else
        sapwood_say("this program runs on %.60s%s, but the preloaded shim is for %s; preload %s-%s.so instead", version,
                    by, names[SAPWOOD_ABI], SAPWOOD_SHIM_NAME, files[abi]);
    exit(2);
}

#define NAME_OF_WORD(word) #word
#define NAME_OF(word) NAME_OF_WORD(word)
#define FIND(member, name) sapwood_library.member = (__typeof__(sapwood_library.member))sapwood_next(name)

void sapwood_library_open(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING > 8192 ? MPI_MAX_LIBRARY_VERSION_STRING : 8192] = "";
    refuse_other_abi(version);
    FIND(initialized, "PMPI_Initialized");
    FIND(finalized, "PMPI_Finalized");
    FIND(query_thread, "PMPI_Query_thread");
    FIND(comm_rank, "PMPI_Comm_rank");
    FIND(comm_size, "PMPI_Comm_size");
    FIND(comm_remote_size, "PMPI_Comm_remote_size");
    FIND(comm_test_inter, "PMPI_Comm_test_inter");
    FIND(topo_test, "PMPI_Topo_test");
    FIND(cartdim_get, "PMPI_Cartdim_get");
    FIND(graph_neighbors_count, "PMPI_Graph_neighbors_count");
    FIND(dist_graph_neighbors_count, "PMPI_Dist_graph_neighbors_count");
    FIND(type_size_x, "PMPI_Type_size_x");
    FIND(comm_group, "PMPI_Comm_group");
    FIND(comm_remote_group, "PMPI_Comm_remote_group");
    FIND(comm_get_name, "PMPI_Comm_get_name");
    FIND(comm_get_parent, "PMPI_Comm_get_parent");
    FIND(comm_create_keyval, "PMPI_Comm_create_keyval");
    FIND(comm_set_attr, "PMPI_Comm_set_attr");
    FIND(group_translate_ranks, "PMPI_Group_translate_ranks");
    FIND(group_free, "PMPI_Group_free");
    FIND(error_class, "PMPI_Error_class");
#if !defined(SAPWOOD_FOR_MPICH)
    FIND(comm_f2c, NAME_OF(PMPI_Comm_f2c));
    FIND(type_f2c, NAME_OF(PMPI_Type_f2c));
    FIND(request_f2c, NAME_OF(PMPI_Request_f2c));
    FIND(message_f2c, NAME_OF(PMPI_Message_f2c));
#endif
#if defined(SAPWOOD_FOR_ABI)
    FIND(get_count_c, "PMPI_Get_count_c");
    FIND(test_cancelled, "PMPI_Test_cancelled");
    sapwood_library.has_mpich_handles = is_mpich(version);
    sapwood_library.request_empty = sapwood_symbol("ompi_request_empty");
#endif
#if defined(SAPWOOD_FOR_OPENMPI)
    sapwood_library.comm_world = sapwood_symbol("ompi_mpi_comm_world");
    sapwood_library.comm_self = sapwood_symbol("ompi_mpi_comm_self");
    sapwood_library.comm_null = sapwood_symbol("ompi_mpi_comm_null");
    sapwood_library.type_null = sapwood_symbol("ompi_mpi_datatype_null");
    sapwood_library.request_null = sapwood_symbol("ompi_request_null");
    sapwood_library.request_empty = sapwood_symbol("ompi_request_empty");
    sapwood_library.message_no_proc = sapwood_symbol("ompi_message_no_proc");
    sapwood_library.fortran_in_place = sapwood_symbol("mpi_fortran_in_place_");
    sapwood_library.fortran_status_ignore = sapwood_symbol("mpi_fortran_status_ignore_");
    sapwood_library.fortran_statuses_ignore = sapwood_symbol("mpi_fortran_statuses_ignore_");
#else
    sapwood_library.comm_world = MPI_COMM_WORLD;
    sapwood_library.comm_self = MPI_COMM_SELF;
    sapwood_library.comm_null = MPI_COMM_NULL;
    sapwood_library.type_null = MPI_DATATYPE_NULL;
    sapwood_library.request_null = MPI_REQUEST_NULL;
    sapwood_library.message_no_proc = MPI_MESSAGE_NO_PROC;
#endif
#if defined(SAPWOOD_FOR_MPICH)
    /* Those of mpi_f08; the functions of mpif.h call C's with C's. */
    sapwood_library.fortran_status_ignore = sapwood_symbol("MPIR_F08_MPI_STATUS_IGNORE_OBJ");
    sapwood_library.fortran_statuses_ignore = sapwood_symbol("MPIR_F08_MPI_STATUSES_IGNORE_OBJ");
#endif
}

#if defined(SAPWOOD_FOR_ABI)
void sapwood_library_try(void)
{
    const MPI_Count bytes = INT64_C(0x2345678901);
    MPI_Status status = {0};
    __typeof__(PMPI_Status_set_elements_c) *set_elements = sapwood_next("PMPI_Status_set_elements_c");
    __typeof__(PMPI_Status_set_cancelled) *set_cancelled = sapwood_next("PMPI_Status_set_cancelled");
    if (set_elements(&status, MPI_BYTE, bytes) != MPI_SUCCESS || sapwood_count_of(&status) != bytes)
        return;
    sapwood_library.has_mpich_status =
        set_cancelled(&status, 1) == MPI_SUCCESS && sapwood_count_of(&status) == SAPWOOD_CANCELLED;
}
#else
void sapwood_library_try(void)
{
}
#endif
