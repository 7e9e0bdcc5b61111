/* What the environment asks of the bypass; ../../../docs/bypass.md lists the names. */
#ifndef SAPWOOD_BYPASS_SETTINGS_H
#define SAPWOOD_BYPASS_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "visibility.h"

enum bypass_kind { BYPASS_REDUCE, BYPASS_ALLREDUCE, BYPASS_BARRIER, BYPASS_KINDS };
enum { BYPASS_RING_LIMIT = 1024 };

struct bypass_settings {
    uint32_t kinds;         /* one bit per bypass_kind */
    uint32_t bytes_max;     /* larger operands go to the MPI library */
    uint32_t ring;          /* instances that a rank may be ahead of the slowest root */
    uint32_t chunk_bytes;   /* of an operand that one instance holds */
    uint32_t after;         /* calls on a communicator before it gets shared memory */
    uint32_t ranks_min;     /* of a communicator that gets shared memory */
    bool report;            /* a summary on standard error at MPI_Finalize */
    const char *json_path;  /* NULL, or where rank 0 writes the counters of the job */
};
extern SAPWOOD_HIDDEN struct bypass_settings bypass_settings;

/* Reads the environment; a value that cannot be read is named once and its default kept. */
void bypass_settings_read(void);

/* Whether the counters of the job are to be told. */
bool bypass_settings_ask(void);

/* A number that differs where settings differ that all ranks must share. */
uint32_t bypass_settings_digest(void);

#endif
