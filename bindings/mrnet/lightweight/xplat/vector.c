/*
 * Vectors by their names in C.
 */
#include "xplat_lightweight/vector.h"

#define FIRST_ROOM 8

/* Whether there is room for this many elements. */
static int reserve(vector_t *vector, size_t wanted)
{
    if (wanted <= vector->alloc_size)
        return 1;
    size_t room = vector->alloc_size == 0 ? FIRST_ROOM : vector->alloc_size * 2;
    if (room < wanted)
        room = wanted;
    void **moved = realloc(vector->vec, room * sizeof *moved);
    if (moved == NULL)
        return 0;
    vector->vec = moved;
    vector->alloc_size = room;
    return 1;
}

vector_t *new_empty_vector_t(void)
{
    return calloc(1, sizeof(vector_t));
}

void delete_vector_t(vector_t *vector)
{
    free(vector->vec);
    free(vector);
}

void clear(vector_t *vector)
{
    vector->size = 0;
}

void copy_vector(vector_t *from, vector_t *to)
{
    if (from == to || !reserve(to, from->size))
        return;
    if (from->size > 0)
        memcpy(to->vec, from->vec, from->size * sizeof *to->vec);
    to->size = from->size;
}

void pushBackElement(vector_t *vector, void *element)
{
    if (reserve(vector, vector->size + 1))
        vector->vec[vector->size++] = element;
}

void *popBackElement(vector_t *vector)
{
    return vector->size == 0 ? NULL : vector->vec[--vector->size];
}

void *getBackElement(vector_t *vector)
{
    return vector->size == 0 ? NULL : vector->vec[vector->size - 1];
}

int findElement(vector_t *vector, void *element)
{
    for (size_t at = 0; at < vector->size; at++)
        if (vector->vec[at] == element)
            return 1;
    return 0;
}

vector_t *eraseElement(vector_t *vector, void *element)
{
    for (size_t at = 0; at < vector->size; at++) {
        if (vector->vec[at] != element)
            continue;
        vector->size--;
        memmove(vector->vec + at, vector->vec + at + 1, (vector->size - at) * sizeof *vector->vec);
        break;
    }
    return vector;
}
