/* Regions of a program, seen beside its MPI calls by `sapwood mpi`.
 *
 *     sapwood_region_begin("solve");
 *     ...
 *     sapwood_region_end("solve");
 *
 * Link with -lsapwood-region (shared or static). Without Sapwood's shim the calls
 * do nothing; with it, each name gets its count and inclusive time per rank.
 *
 * Regions nest and may begin before MPI_Init. Each thread has its own. Ending a
 * region ends the innermost open one of that name; regions opened inside it that
 * are still open are dropped. An end without a begin, a name that is empty or
 * longer than SAPWOOD_REGION_NAME_BYTES_MAX, nesting deeper than
 * SAPWOOD_REGION_DEPTH_MAX, and more names than the profile holds are dropped
 * too: counted as such and otherwise ignored. NULL is ignored.
 */
#ifndef SAPWOOD_MPI_H
#define SAPWOOD_MPI_H

#define SAPWOOD_REGION_NAME_BYTES_MAX 255
#define SAPWOOD_REGION_DEPTH_MAX 64

#ifdef __cplusplus
extern "C" {
#endif

void sapwood_region_begin(const char *name);
void sapwood_region_end(const char *name);

#ifdef __cplusplus
}
#endif

#endif
