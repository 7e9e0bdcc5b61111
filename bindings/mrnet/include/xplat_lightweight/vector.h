/*
 * A vector of pointers to what the caller owns.
 */
#ifndef XPLAT_LIGHTWEIGHT_VECTOR_H
#define XPLAT_LIGHTWEIGHT_VECTOR_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vector_t {
    void **vec;
    size_t size;
    size_t alloc_size;
} vector_t;

/* NULL if there is no memory. */
vector_t *new_empty_vector_t(void);
void delete_vector_t(vector_t *vector);
void clear(vector_t *vector);
/* Makes the second one equal to the first. */
void copy_vector(vector_t *from, vector_t *to);
void pushBackElement(vector_t *vector, void *element);
/* NULL for an empty vector. */
void *popBackElement(vector_t *vector);
void *getBackElement(vector_t *vector);
/* Whether it is there. */
int findElement(vector_t *vector, void *element);
vector_t *eraseElement(vector_t *vector, void *element);

#ifdef __cplusplus
}
#endif

#endif
