/*
 * xplat_lightweight/map.h by itself, beside an array that does the same.
 */
#include "xplat_lightweight/map.h"

#include "../check.h"

enum { KEYS = 500, ROUNDS = 20000 };
static char values[KEYS];
static void *wanted[KEYS];

/* Numbers that look like chance. */
static unsigned int next(void)
{
    static unsigned int state = 1;
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

int main(void)
{
    mrn_map_t *map = new_map_t();
    size_t size = 0;
    DEMAND(map != NULL && map->size == 0 && get_val(map, 1) == NULL && erase(map, 1) == map);
    for (int round = 0; round < ROUNDS; round++) {
        int key = (int)(next() % KEYS) - KEYS / 2, place = key + KEYS / 2;
        if (next() % 2) {
            size += wanted[place] == NULL;
            wanted[place] = &values[next() % KEYS];
            insert(map, key, wanted[place]);
        } else {
            size -= wanted[place] != NULL;
            wanted[place] = NULL;
            DEMAND(erase(map, key) == map);
        }
        DEMAND(map->size == size && get_val(map, key) == wanted[place]);
    }
    for (int place = 0; place < KEYS; place++)
        DEMAND(get_val(map, place - KEYS / 2) == wanted[place]);
    for (size_t at = 0; at < map->size; at++)
        DEMAND(get_val(map, map->keys[at]) != NULL && map->size <= map->alloc_size);
    clear_map_t(&map);
    DEMAND(map->size == 0 && map->root == NULL && get_val(map, 3) == NULL);
    insert(map, 3, values);
    insert(map, 2, values);
    DEMAND(map->keys[0] == 3 && map->keys[1] == 2 && map->root->key == 3);
    print(map);
    delete_map_t(map);
    return 0;
}
