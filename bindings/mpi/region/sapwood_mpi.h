/* Regions of a program, seen beside its MPI calls by `sapwood mpi`.
 *
 *     sapwood_region_begin("solve");
 *     ...
 *     sapwood_region_end("solve");
 *
 * In Fortran the same calls take a character variable, by the module sapwood_region or without an
 * interface, as in programs that include mpif.h.
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
 *
 *     sapwood_round();
 *
 * marks an iteration of this rank: the k-th mark of every rank together becomes one
 * round of the monitor, as each rank's counts were at that moment. It never waits.
 *
 *     struct sapwood_advice advice;
 *     if (sapwood_advice(&advice)) ...
 *
 * gives what the monitor has found over all ranks in its latest round, at once and
 * without communication. 0 as long as there is nothing: without the shim always, and
 * else until the round that follows the first question. Ranks may be a round apart, so
 * what all ranks must do alike is decided on one of them.
 */
#ifndef SAPWOOD_MPI_H
#define SAPWOOD_MPI_H

#define SAPWOOD_REGION_NAME_BYTES_MAX 255
#define SAPWOOD_REGION_DEPTH_MAX 64

/* Times are sums since MPI_Init: what an interval adds is the difference of two. */
struct sapwood_advice {
    unsigned long long round; /* its number, from 1 */
    unsigned ranks;           /* that it covers */
    unsigned slowest_rank;    /* the one with the most time outside of MPI */
    double compute_mean_s;    /* time outside of MPI, mean over the ranks */
    double compute_max_s;     /* and its largest value */
    double imbalance;         /* largest over mean, less 1 */
    char slowest_class[24];   /* functional class with the most time, or "" */
};

/* One event of that round: an MPI function or a region. */
struct sapwood_event_advice {
    unsigned long long round;
    unsigned long long count; /* of all ranks */
    unsigned ranks;           /* that have the event */
    unsigned max_rank;        /* the one with the most time in it */
    double time_mean_s;       /* mean over the ranks that have it */
    double time_max_s;
    double imbalance;         /* largest over mean, less 1 */
};

#ifdef __cplusplus
extern "C" {
#endif

void sapwood_region_begin(const char *name);
void sapwood_region_end(const char *name);
void sapwood_round(void);
/* 1 and the advice, or 0 and zeros. */
int sapwood_advice(struct sapwood_advice *advice);
/* The same for one event. Of an event that has different communicators, the one with
 * the most time. Only the events with the most time of the program are there. */
int sapwood_advice_event(const char *name, struct sapwood_event_advice *advice);

#ifdef __cplusplus
}
#endif

#endif
