/*
 * Parts of paths.
 */
#ifndef XPLAT_LIGHTWEIGHT_PATHUTILS_H
#define XPLAT_LIGHTWEIGHT_PATHUTILS_H

#ifdef __cplusplus
extern "C" {
#endif

/* The last part of a path, for the caller to free; NULL if there is no memory. */
char *GetFilename(const char *path);

#ifdef __cplusplus
}
#endif

#endif
