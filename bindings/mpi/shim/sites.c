/* See sites.h. Asks the dynamic linker, once for each site. */
#define _GNU_SOURCE
#include "sites.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES_MAX = 512 };

/* The path of the program itself, which the linker does not know. */
static const char *program_path(void)
{
    static char path[PATH_BYTES_MAX];
    if (*path == '\0') {
        ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
        path[length < 0 ? 0 : length] = '\0';
    }
    return path;
}

void sapwood_site_found(struct sapwood_tally *tally, const struct sapwood_call *call)
{
    Dl_info info;
    struct link_map *map = NULL;
    uintptr_t address = (uintptr_t)call->site;
    SAPWOOD_TELL(tally->subject, address);
    if (dladdr1(call->site, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL)
        return;
    const char *path = *map->l_name == '\0' ? program_path() : map->l_name;
    SAPWOOD_TELL(tally->subject, address - map->l_addr);
    SAPWOOD_TELL(tally->name, sapwood_tally_name(path, strlen(path)));
}
