/* See names.h. */
#include "names.h"

#include <string.h>

#include "handover.h"
#include "say.h"

#define READ(word) atomic_load_explicit(&(word), memory_order_relaxed)
#define WRITE(word, value) atomic_store_explicit(&(word), (value), memory_order_relaxed)

enum {
    /* Names take no more of the name area; the rest is for regions. */
    NAMES_BYTES_MAX = SAPWOOD_NAMES_BYTES / 4,
    /* Room is taken from the area by this much, and never given back to regions. */
    PART_BYTES = 1024,
    PARTS = NAMES_BYTES_MAX / PART_BYTES,
    UNIT_BYTES = 8,
    UNITS_OF_PART = PART_BYTES / UNIT_BYTES,
    UNITS = PARTS * UNITS_OF_PART,
    /* More than MPI_MAX_OBJECT_NAME; what is longer is cut. */
    NAME_BYTES_MAX = 255,
};

/* A name, by the number of its first unit. */
struct name {
    uint32_t hash;
    uint32_t length; /* bytes; 0 where no name begins */
    uint32_t users;  /* spaces in use that have it */
    uint32_t first;  /* of all spaces that have it, freed ones too: its number plus 1 */
    uint32_t search; /* the last one that found it among the table's communicators */
};

/* A space in the list of those that have one name, by its number; neighbours as numbers plus 1. */
struct holder {
    uint32_t before;
    uint32_t after;
};

static struct name names[UNITS];
/* To which name a unit belongs: the number of that one's first unit plus 1; 0 none. */
static uint16_t owner_of[UNITS];
static uint32_t part_offsets[PARTS];
static uint32_t parts;
static struct holder holders[SAPWOOD_SPACES];
/* Where the next search begins: behind the latest name, so that names that were freed first go first. */
static uint32_t next_unit;
static uint32_t searches;

static uint32_t units_of(uint32_t length)
{
    return (length + UNIT_BYTES) / UNIT_BYTES;
}

static char *text_of(uint32_t unit)
{
    return sapwood_table->names + part_offsets[unit / UNITS_OF_PART] + unit % UNITS_OF_PART * UNIT_BYTES;
}

static uint32_t place_of(uint32_t unit)
{
    return (uint32_t)(text_of(unit) - sapwood_table->names) + 1;
}

/* The name that stands at a place of the table. */
static struct name *name_at(uint32_t place)
{
    uint32_t part = 0;
    while (place - 1 - part_offsets[part] >= PART_BYTES)
        part++;
    return &names[part * UNITS_OF_PART + (place - 1 - part_offsets[part]) / UNIT_BYTES];
}

static uint32_t hash_of(const char *name, uint32_t length)
{
    uint32_t hash = 2166136261u;
    for (uint32_t at = 0; at < length; at++)
        hash = (hash ^ (unsigned char)name[at]) * 16777619u;
    return hash;
}

/* Where a name of this text stands, plus 1; 0 none. */
static uint32_t place_of_known(const char *text, uint32_t length, uint32_t hash)
{
    for (uint32_t unit = 0; unit < parts * UNITS_OF_PART;) {
        const struct name *name = &names[unit];
        if (name->length == length && name->hash == hash && memcmp(text_of(unit), text, length) == 0)
            return place_of(unit);
        unit += name->length == 0 ? 1 : units_of(name->length);
    }
    return 0;
}

/* Takes one more part of the area. */
static bool is_grown(void)
{
    static const char empty[PART_BYTES];
    if (parts == PARTS)
        return false;
    int64_t offset = sapwood_name_stored(empty, sizeof empty - 1);
    if (offset < 0)
        return false;
    part_offsets[parts++] = (uint32_t)offset;
    return true;
}

/* Notes the names of the table's communicators, which need have no space. */
static void note_communicators(void)
{
    searches++;
    for (int at = 0; at < SAPWOOD_COMMUNICATORS; at++) {
        const struct sapwood_communicator *one = &sapwood_table->communicators[at];
        if (READ(one->handle) != 0 && READ(one->name) != 0)
            name_at(READ(one->name))->search = searches;
    }
}

static bool is_free(uint32_t unit, bool with_names_of_freed)
{
    if (owner_of[unit] == 0)
        return true;
    const struct name *name = &names[owner_of[unit] - 1];
    return with_names_of_freed && name->users == 0 && name->search != searches;
}

/* The first of a run of this many free units, plus 1; 0 none. */
static uint32_t units_found(uint32_t units, bool with_names_of_freed)
{
    uint32_t all = parts * UNITS_OF_PART, run = 0;
    if (all == 0)
        return 0;
    if (with_names_of_freed)
        note_communicators();
    /* Once around, and on to the end of the part where that began. */
    for (uint32_t tries = 0; tries < all + UNITS_OF_PART; tries++) {
        uint32_t unit = (next_unit + tries) % all;
        if (unit % UNITS_OF_PART == 0)
            run = 0;
        run = is_free(unit, with_names_of_freed) ? run + 1 : 0;
        if (run == units)
            return unit - units + 2;
    }
    return 0;
}

/* Takes its name from all that have it, and then its text. */
static void remove_name(struct name *name)
{
    uint32_t unit = (uint32_t)(name - names), place = place_of(unit), units = units_of(name->length);
    for (uint32_t number = name->first; number != 0; number = holders[number - 1].after)
        WRITE(sapwood_events->spaces[number - 1].name, 0);
    for (int at = 0; at < SAPWOOD_COMMUNICATORS; at++)
        if (READ(sapwood_table->communicators[at].name) == place)
            WRITE(sapwood_table->communicators[at].name, 0);
    /* A reader that sees a part of another name sees that the freed ones have none. */
    atomic_thread_fence(memory_order_release);
    memset(text_of(unit), 0, (size_t)units * UNIT_BYTES);
    memset(&owner_of[unit], 0, units * sizeof *owner_of);
    *name = (struct name){.length = 0};
}

/* No room: more names are in use than fit. */
static void leave_out(void)
{
    static bool is_said;
    sapwood_add(&sapwood_table->header.names_left_out, 1, true);
    if (!is_said && sapwood_rank_on_host(sapwood_table->header.world_rank) == 0)
        sapwood_say("names of communicators, windows and files that are in use take more than %d bytes in a rank; "
                    "those that find no room are reported without a name", NAMES_BYTES_MAX);
    is_said = true;
}

uint32_t sapwood_name_kept(const char *text, size_t bytes)
{
    while (bytes > 0 && text[bytes - 1] == ' ')
        bytes--;
    uint32_t length = (uint32_t)strnlen(text, bytes < NAME_BYTES_MAX ? bytes : NAME_BYTES_MAX);
    if (length == 0)
        return 0;
    uint32_t hash = hash_of(text, length), known = place_of_known(text, length, hash), units = units_of(length);
    if (known != 0)
        return known;
    uint32_t found = units_found(units, false);
    if (found == 0 && is_grown())
        found = units_found(units, false);
    if (found == 0)
        found = units_found(units, true);
    if (found == 0) {
        leave_out();
        return 0;
    }
    uint32_t unit = found - 1;
    for (uint32_t at = unit; at < unit + units; at++) {
        if (owner_of[at] != 0)
            remove_name(&names[owner_of[at] - 1]);
        owner_of[at] = (uint16_t)found;
    }
    memcpy(text_of(unit), text, length);
    names[unit] = (struct name){.hash = hash, .length = length};
    next_unit = unit + units;
    return place_of(unit);
}

static void unlink_holder(const struct sapwood_space *space)
{
    struct holder *holder = &holders[space - sapwood_events->spaces];
    uint32_t *to_it = holder->before == 0 ? &name_at(READ(space->name))->first : &holders[holder->before - 1].after;
    *to_it = holder->after;
    if (holder->after != 0)
        holders[holder->after - 1].before = holder->before;
}

void sapwood_name_held(struct sapwood_space *space, uint32_t place)
{
    uint32_t before = READ(space->name), number = (uint32_t)(space - sapwood_events->spaces) + 1;
    if (before == place)
        return;
    if (before != 0) {
        unlink_holder(space);
        name_at(before)->users--;
    }
    if (place != 0) {
        struct name *name = name_at(place);
        holders[number - 1] = (struct holder){.before = 0, .after = name->first};
        if (name->first != 0)
            holders[name->first - 1].before = number;
        name->first = number;
        name->users++;
    }
    /* The text is in place. */
    atomic_store_explicit(&space->name, place, memory_order_release);
}

void sapwood_name_released(const struct sapwood_space *space)
{
    if (READ(space->name) != 0)
        name_at(READ(space->name))->users--;
}

void sapwood_name_dropped(struct sapwood_space *space)
{
    if (READ(space->name) != 0)
        unlink_holder(space);
    WRITE(space->name, 0);
}
