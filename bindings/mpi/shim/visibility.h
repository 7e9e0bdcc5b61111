/* Where a name is visible, and what must be inlined. */
#ifndef SAPWOOD_VISIBILITY_H
#define SAPWOOD_VISIBILITY_H

/* Known to the shim's own files only, so that reaching it takes no detour. */
#define SAPWOOD_HIDDEN __attribute__((visibility("hidden")))
/* Called by the program. */
#define SAPWOOD_EXPORT __attribute__((visibility("default")))
/* On the path of every counted call. */
#define SAPWOOD_HOT inline __attribute__((always_inline))

#endif
