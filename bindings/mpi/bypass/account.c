/* Counters of the job, as JSON and as a summary; see account.h. */
#define _GNU_SOURCE
#include "account.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "file_limit.h"
#include "say.h"
#include "segment.h"

struct bypass_account bypass_account;

static const char *const kind_names[BYPASS_KINDS] = {"reduce", "allreduce", "barrier"};
static const char *const cause_names[BYPASS_CAUSES] = {
    "not_announced", "not_all_here", "inter_communicator", "few_ranks", "no_memory",    "first_calls",
    "operation",     "datatype",     "empty",              "too_large", "bad_argument", "not_asked_for",
};

static void write_rank(FILE *file, const struct bypass_account *a, const struct bypass_lateness *l, int rank)
{
    fprintf(file, "    {\"rank\": %d, \"taken\": {", rank);
    for (int i = 0; i < BYPASS_KINDS; i++)
        fprintf(file, "%s\"%s\": %llu", i > 0 ? ", " : "", kind_names[i], (unsigned long long)a->taken[i]);
    fprintf(file, "}, \"left_to_mpi\": {");
    const char *comma = "";
    for (int i = 0; i < BYPASS_CAUSES; i++)
        if (a->left[i] > 0) {
            fprintf(file, "%s\"%s\": %llu", comma, cause_names[i], (unsigned long long)a->left[i]);
            comma = ", ";
        }
    fprintf(file, "}");
    const struct {
        const char *name;
        uint64_t value;
    } members[] = {
        {"communicators", a->communicators}, {"completed", a->completed}, {"folds", a->folds},
        {"waits", a->waits},   {"held", a->held},           {"sleeps", a->sleeps},
        {"progress_calls", a->pokes},        {"wait_us", a->wait_ns / 1000}, {"mismatches", a->mismatches},
        {"redone", a->redone}, {"early", l->early},         {"expected", l->expected},
        {"late", l->late},     {"late_us", l->late_ns / 1000}, {"late_us_max", l->late_ns_max / 1000},
    };
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        fprintf(file, ", \"%s\": %llu", members[i].name, (unsigned long long)members[i].value);
    fprintf(file, "}");
}

/* The children over which instances came. */
static void write_children(FILE *file, const struct bypass_edges *edges, uint32_t parent)
{
    const char *comma = "";
    for (uint32_t child = 0; child < edges->ranks; child++) {
        const struct bypass_edge *e = bypass_edge_at(edges, parent, child);
        if (child == parent || e->instances == 0)
            continue;
        fprintf(file, "%s\n      {\"rank\": %u, \"instances\": %llu, \"last\": %llu, \"late\": %llu, \"late_us\": %llu}",
                comma, child, (unsigned long long)e->instances, (unsigned long long)e->last,
                (unsigned long long)e->late, (unsigned long long)e->late_ns / 1000);
        comma = ",";
    }
}

static void write_parents(FILE *file, const struct bypass_edges *edges)
{
    const char *comma = "";
    for (uint32_t parent = 0; parent < edges->ranks; parent++) {
        const struct bypass_edge *own = bypass_edge_at(edges, parent, parent);
        if (own->instances == 0)
            continue;
        fprintf(file, "%s    {\"rank\": %u, \"instances\": %llu, \"own_last\": %llu, \"children\": [", comma, parent,
                (unsigned long long)own->instances, (unsigned long long)own->last);
        write_children(file, edges, parent);
        fprintf(file, "]}");
        comma = ",\n";
    }
    fprintf(file, "\n");
}

static void write_json(const char *path, const struct bypass_segment *world, const struct bypass_lateness *lateness,
                       int rank, int size)
{
    char partial[4096];
    int length = snprintf(partial, sizeof partial, "%s.part", path);
    FILE *file = length > 0 && (size_t)length < sizeof partial ? fopen(partial, "we") : NULL;
    if (file == NULL) {
        sapwood_say("cannot write %.200s: %s", path, strerror(errno));
        return;
    }
    fprintf(file, "{\n  \"schema\": \"sapwood.bypass-job/1\",\n  \"ranks\": %d,\n  \"whole\": %s,\n  \"by_rank\": [\n",
            size, world != NULL ? "true" : "false");
    for (int i = world != NULL ? 0 : rank; i < (world != NULL ? size : rank + 1); i++) {
        static const struct bypass_lateness none;
        write_rank(file, world != NULL ? &world->accounts[i] : &bypass_account, lateness != NULL ? &lateness[i] : &none,
                   i);
        fprintf(file, "%s\n", world != NULL && i + 1 < size ? "," : "");
    }
    fprintf(file, "  ],\n  \"by_parent\": [\n");
    if (world != NULL && world->edges.at != NULL)
        write_parents(file, &world->edges);
    fprintf(file, "  ]\n}\n");
    bool failed = ferror(file) != 0;
    if (fclose(file) == 0 && !failed && rename(partial, path) == 0)
        return;
    sapwood_say("cannot write %.200s: %s", path, strerror(errno));
    remove(partial);
}

/* Names a rank that began fewer calls on MPI_COMM_WORLD than another. */
static void name_who_stayed_away(const struct bypass_segment *world)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < world->size; i++)
        most = world->members[i].calls > most ? world->members[i].calls : most;
    for (uint32_t i = 0; i < world->size; i++)
        if (world->members[i].calls < most)
            sapwood_say("bypass: rank %u did not take part in the last reductions of MPI_COMM_WORLD", i);
}

/* The edges at which parents had waited most, had they not left. */
static void write_edges(const struct bypass_edges *edges)
{
    enum { TOLD = 3 };
    uint64_t below = UINT64_MAX;
    for (int told = 0; told < TOLD; told++) {
        const struct bypass_edge *most = NULL;
        uint32_t parent = 0, child = 0;
        for (uint32_t p = 0; p < edges->ranks; p++)
            for (uint32_t c = 0; c < edges->ranks; c++) {
                const struct bypass_edge *e = bypass_edge_at(edges, p, c);
                if (c != p && e->late_ns < below && e->late_ns > (most != NULL ? most->late_ns : 0)) {
                    most = e;
                    parent = p;
                    child = c;
                }
            }
        if (most == NULL)
            return;
        below = most->late_ns;
        sapwood_say("bypass: what rank %u sends to rank %u was complete after that one had called in %llu of %llu "
                    "reductions, by %.3f ms on the mean, and came last there in %llu",
                    child, parent, (unsigned long long)most->late, (unsigned long long)most->instances,
                    (double)most->late_ns / (double)most->late / 1e6, (unsigned long long)most->last);
    }
}

static void write_summary(const struct bypass_segment *world, int size)
{
    uint64_t taken = 0, left[BYPASS_CAUSES] = {0};
    for (int rank = 0; rank < (world != NULL ? size : 1); rank++) {
        const struct bypass_account *a = world != NULL ? &world->accounts[rank] : &bypass_account;
        for (int i = 0; i < BYPASS_KINDS; i++)
            taken += a->taken[i];
        for (int i = 0; i < BYPASS_CAUSES; i++)
            left[i] += a->left[i];
    }
    char causes[400] = "";
    size_t used = 0;
    for (int i = 0; i < BYPASS_CAUSES; i++)
        if (left[i] > 0 && used + 40 < sizeof causes)
            used += (size_t)snprintf(causes + used, sizeof causes - used, "; %s %llu", cause_names[i],
                                     (unsigned long long)left[i]);
    sapwood_say("bypass: %s: calls taken %llu%s%s", world != NULL ? "all ranks" : "rank 0 alone",
                (unsigned long long)taken, used > 0 ? ", left to MPI by cause" : "", causes);
}

void bypass_account_tell(const struct bypass_segment *world, const struct bypass_lateness *lateness, int rank,
                         int size)
{
    if (bypass_settings.json_path != NULL) {
        struct sapwood_file_signal held;
        sapwood_file_signal_hold(&held);
        write_json(bypass_settings.json_path, world, lateness, rank, size);
        sapwood_file_signal_release(&held);
    }
    if (!bypass_settings.report)
        return;
    write_summary(world, size);
    if (world == NULL)
        return;
    if (world->edges.at != NULL)
        write_edges(&world->edges);
    name_who_stayed_away(world);
}
