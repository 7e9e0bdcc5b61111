/*
 * Maps by their names in C: a search tree over scattered keys, so that keys that come in order leave
 * it shallow.
 */
#include "xplat_lightweight/map.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 8

/* Scatters keys, no two to the same place: each step can be undone. */
static int scatter(int key)
{
    uint32_t bits = (uint32_t)key;
    bits = (bits ^ bits >> 16) * 0x45d9f3bu;
    bits = (bits ^ bits >> 16) * 0x45d9f3bu;
    return (int)(bits ^ bits >> 16);
}

/* Where the node of a key is held, or would be. */
static map_node_t **place_of(mrn_map_t *map, int key)
{
    int hashed = scatter(key);
    map_node_t **place = &map->root;
    while (*place != NULL && (*place)->hashed_key != hashed)
        place = hashed < (*place)->hashed_key ? &(*place)->left : &(*place)->right;
    return place;
}

mrn_map_t *new_map_t(void)
{
    return calloc(1, sizeof(mrn_map_t));
}

void insert(mrn_map_t *map, int key, void *val)
{
    map_node_t **place = place_of(map, key);
    if (*place != NULL) {
        (*place)->val = val;
        return;
    }
    if (map->size == map->alloc_size) {
        size_t room = map->alloc_size == 0 ? FIRST_ROOM : map->alloc_size * 2;
        int *moved = realloc(map->keys, room * sizeof *moved);
        if (moved == NULL)
            return;
        map->keys = moved;
        map->alloc_size = room;
    }
    map_node_t *made = calloc(1, sizeof *made);
    if (made == NULL)
        return;
    made->key = key;
    made->hashed_key = scatter(key);
    made->val = val;
    *place = made;
    map->keys[map->size++] = key;
}

void *get_val(mrn_map_t *map, int key)
{
    map_node_t *found = *place_of(map, key);
    return found == NULL ? NULL : found->val;
}

/* Takes a node out of the tree; the last one of its left half steps into its place. */
static void take_out(map_node_t **place)
{
    map_node_t *gone = *place;
    if (gone->left == NULL) {
        *place = gone->right;
    } else {
        map_node_t **last = &gone->left;
        while ((*last)->right != NULL)
            last = &(*last)->right;
        map_node_t *heir = *last;
        *last = heir->left;
        heir->left = gone->left;
        heir->right = gone->right;
        *place = heir;
    }
    free(gone);
}

mrn_map_t *erase(mrn_map_t *map, int key)
{
    map_node_t **place = place_of(map, key);
    size_t at = 0;
    if (*place == NULL)
        return map;
    take_out(place);
    while (map->keys[at] != key)
        at++;
    map->size--;
    memmove(map->keys + at, map->keys + at + 1, (map->size - at) * sizeof *map->keys);
    return map;
}

static void empty(mrn_map_t *map)
{
    while (map->root != NULL)
        take_out(&map->root);
    map->size = 0;
}

void clear_map_t(mrn_map_t **map)
{
    empty(*map);
}

void delete_map_t(mrn_map_t *map)
{
    empty(map);
    free(map->keys);
    free(map);
}

void print(mrn_map_t *map)
{
    for (size_t at = 0; at < map->size; at++)
        printf("%d: %p\n", map->keys[at], (*place_of(map, map->keys[at]))->val);
}
