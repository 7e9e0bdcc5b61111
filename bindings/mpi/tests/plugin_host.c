/* Loads a plug-in with local scope and calls its `solve`: plugin_host PLUGIN */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*solve)(void) = plugin == NULL ? NULL : (int (*)(void))dlsym(plugin, "solve");
    if (solve == NULL) {
        fprintf(stderr, "plugin_host: %s\n", dlerror());
        return 2;
    }
    return solve();
}
