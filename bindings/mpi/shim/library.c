/* Symbol look-up and the check of the ABI; see library.h. */
#define _GNU_SOURCE
#include "library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"

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

static bool is_our_abi(const char *version)
{
    bool open_mpi = strstr(version, "Open MPI") != NULL;
    bool mpich = strstr(version, "MPICH") != NULL || strstr(version, "MVAPICH") != NULL ||
                 strstr(version, "Intel(R) MPI") != NULL;
    return SAPWOOD_ABI == SAPWOOD_ABI_OPENMPI ? open_mpi : mpich && !open_mpi;
}

static void refuse_other_abi(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING > 8192 ? MPI_MAX_LIBRARY_VERSION_STRING : 8192] = "";
    int length = 0;
    int (*ask)(char *, int *) = (int (*)(char *, int *))sapwood_symbol("PMPI_Get_library_version");
    if (ask == NULL || ask(version, &length) != 0 || is_our_abi(version))
        return;
    version[strcspn(version, "\n,")] = '\0';
    for (char *tab = version; (tab = strchr(tab, '\t')) != NULL;)
        *tab = ' ';
    sapwood_say("this program runs on %.60s, but the preloaded shim is for %s; preload %s-%s.so instead",
                version, SAPWOOD_ABI == SAPWOOD_ABI_OPENMPI ? "Open MPI" : "MPICH",
                SAPWOOD_SHIM_NAME, SAPWOOD_ABI == SAPWOOD_ABI_OPENMPI ? "mpich" : "openmpi");
    exit(2);
}

#define FIND(member, name) sapwood_library.member = (__typeof__(sapwood_library.member))sapwood_next(name)

void sapwood_library_open(void)
{
    refuse_other_abi();
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
    FIND(group_translate_ranks, "PMPI_Group_translate_ranks");
    FIND(group_free, "PMPI_Group_free");
    FIND(error_class, "PMPI_Error_class");
#if defined(SAPWOOD_FOR_OPENMPI)
    FIND(comm_f2c, "PMPI_Comm_f2c");
    FIND(type_f2c, "PMPI_Type_f2c");
    FIND(request_f2c, "PMPI_Request_f2c");
    FIND(message_f2c, "PMPI_Message_f2c");
    sapwood_library.comm_world = sapwood_symbol("ompi_mpi_comm_world");
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
    sapwood_library.comm_null = MPI_COMM_NULL;
    sapwood_library.type_null = MPI_DATATYPE_NULL;
    sapwood_library.request_null = MPI_REQUEST_NULL;
    sapwood_library.message_no_proc = MPI_MESSAGE_NO_PROC;
    /* Those of mpi_f08; the functions of mpif.h call C's with C's. */
    sapwood_library.fortran_status_ignore = sapwood_symbol("MPIR_F08_MPI_STATUS_IGNORE_OBJ");
    sapwood_library.fortran_statuses_ignore = sapwood_symbol("MPIR_F08_MPI_STATUSES_IGNORE_OBJ");
#endif
}
