/*
 * A map from numbers to what the caller owns.
 */
#ifndef XPLAT_LIGHTWEIGHT_MAP_H
#define XPLAT_LIGHTWEIGHT_MAP_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct map_node_t {
    struct map_node_t *left;
    struct map_node_t *right;
    int key;
    int hashed_key;
    void *val;
} map_node_t;

/* `keys` are those that are there, `size` of them, in the order in which they came. */
typedef struct mrn_map_t {
    map_node_t *root;
    int *keys;
    size_t size;
    size_t alloc_size;
} mrn_map_t;

/* NULL if there is no memory. */
mrn_map_t *new_map_t(void);
/* Puts a value in the place of the one that the key has. */
void insert(mrn_map_t *map, int key, void *val);
/* NULL for a key that is not there. */
void *get_val(mrn_map_t *map, int key);
mrn_map_t *erase(mrn_map_t *map, int key);
/* Leaves an empty map. */
void clear_map_t(mrn_map_t **map);
void delete_map_t(mrn_map_t *map);
/* Writes keys and values to standard output. */
void print(mrn_map_t *map);

#ifdef __cplusplus
}
#endif

#endif
