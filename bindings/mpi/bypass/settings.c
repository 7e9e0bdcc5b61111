/* The environment of the bypass; see settings.h. */
#define _GNU_SOURCE
#include "settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"

enum {
    BYTES_MAX_DEFAULT = 32768,
    BYTES_MAX_LIMIT = 64 << 20,
    RING_DEFAULT = 32,
    CHUNK_BYTES_DEFAULT = 8192,
    CHUNK_BYTES_LEAST = 1024,
    CHUNK_BYTES_LIMIT = 1 << 20,
    AFTER_DEFAULT = 4,
    /* Two ranks have no inner place of the tree, and lose by waking the root. */
    RANKS_MIN_DEFAULT = 3,
    AFTER_LIMIT = 1000000,
};

struct bypass_settings bypass_settings;

static uint32_t number(const char *name, uint32_t otherwise, uint32_t least, uint32_t limit)
{
    const char *text = getenv(name);
    if (text == NULL || *text == '\0')
        return otherwise;
    char *end = NULL;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (errno != 0 || *end != '\0' || *text == '-' || value < least || value > limit) {
        sapwood_say("%s=%.40s: expected a number from %u to %u; taking %u", name, text, least, limit, otherwise);
        return otherwise;
    }
    return (uint32_t)value;
}

static uint32_t kinds_named(const char *text)
{
    static const char *const names[BYPASS_KINDS] = {"reduce", "allreduce", "barrier"};
    uint32_t kinds = 0;
    if (text == NULL || *text == '\0')
        return 1u << BYPASS_REDUCE;
    if (strcmp(text, "off") == 0)
        return 0;
    while (*text != '\0') {
        size_t length = strcspn(text, ",");
        int kind = 0;
        while (kind < BYPASS_KINDS && (strlen(names[kind]) != length || strncmp(names[kind], text, length) != 0))
            kind++;
        if (kind == BYPASS_KINDS)
            sapwood_say("SAPWOOD_BYPASS: there is no %.*s; expected off, or some of reduce,allreduce,barrier",
                        (int)(length < 40 ? length : 40), text);
        else
            kinds |= 1u << kind;
        text += length + (text[length] == ',');
    }
    return kinds;
}

void bypass_settings_read(void)
{
    const char *json = getenv("SAPWOOD_BYPASS_JSON");
    const char *report = getenv("SAPWOOD_BYPASS_REPORT");
    bypass_settings = (struct bypass_settings){
        .kinds = kinds_named(getenv("SAPWOOD_BYPASS")),
        .bytes_max = number("SAPWOOD_BYPASS_BYTES_MAX", BYTES_MAX_DEFAULT, 0, BYTES_MAX_LIMIT),
        .ring = number("SAPWOOD_BYPASS_RING", RING_DEFAULT, 1, BYPASS_RING_LIMIT),
        .chunk_bytes = number("SAPWOOD_BYPASS_CHUNK_BYTES", CHUNK_BYTES_DEFAULT, CHUNK_BYTES_LEAST, CHUNK_BYTES_LIMIT),
        .after = number("SAPWOOD_BYPASS_AFTER", AFTER_DEFAULT, 0, AFTER_LIMIT),
        .ranks_min = number("SAPWOOD_BYPASS_RANKS_MIN", RANKS_MIN_DEFAULT, 2, AFTER_LIMIT),
        .report = report != NULL && *report != '\0' && strcmp(report, "0") != 0,
        .json_path = json != NULL && *json != '\0' ? json : NULL,
    };
    bypass_settings.chunk_bytes &= ~63u;
}

bool bypass_settings_ask(void)
{
    return bypass_settings.report || bypass_settings.json_path != NULL;
}

uint32_t bypass_settings_digest(void)
{
    const struct bypass_settings *s = &bypass_settings;
    bool asks = bypass_settings_ask();
    const uint32_t words[] = {s->kinds, s->bytes_max, s->ring, s->chunk_bytes, s->after, s->ranks_min, asks};
    uint32_t digest = 2166136261u;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        digest = (digest ^ words[i]) * 16777619u;
    return digest;
}
