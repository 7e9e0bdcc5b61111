/* MPI's predefined datatypes and operations, as far as the installed library folds them. */
#ifndef SAPWOOD_BYPASS_TYPES_H
#define SAPWOOD_BYPASS_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "library.h"

struct bypass_type {
    MPI_Datatype handle;
    uint32_t extent;
    uint32_t operations; /* one bit per operation that the library accepts */
};

/* Asks the library which operation it folds for which type. MPI is initialised. */
void bypass_types_learn(void);

/* NULL for a derived type. */
const struct bypass_type *bypass_type_of(MPI_Datatype handle);

/* Number of a predefined operation, or -1. */
int bypass_operation_of(MPI_Op handle);

#endif
