/*
 * One packet with every directive there is, filled from a seed and compared with it: what both programs
 * send each other.
 */
#ifndef EVERY_DIRECTIVE_H
#define EVERY_DIRECTIVE_H

#include "check.h"

#define EVERY_SCALAR "%c %uc %hd %uhd %d %ud %ld %uld %f %lf %s"
#define EVERY_ARRAY "%ac %auc %ahd %auhd %ad %aud %ald %auld %af %alf %as"
#define EVERY_LARGE_ARRAY "%Ac %Auc %Ahd %Auhd %Ad %Aud %Ald %Auld %Af %Alf %As"
#define EVERY_DIRECTIVE EVERY_SCALAR " " EVERY_ARRAY " " EVERY_LARGE_ARRAY

struct every {
    int8_t c, ac[4];
    uint8_t uc, auc[4];
    int16_t hd, ahd[4];
    uint16_t uhd, auhd[4];
    int32_t d, ad[4];
    uint32_t ud, aud[4];
    int64_t ld, ald[4];
    uint64_t uld, auld[4];
    float f, af[4];
    double lf, alf[4];
    char text[32], texts[3][32];
    const char *s, *as[3];
    /* From 0 to 4, so that empty arrays come up too. */
    uint32_t count;
    uint64_t large_count;
};

static inline void fill(struct every *every, uint32_t seed)
{
    memset(every, 0, sizeof *every);
    every->count = seed % 5;
    every->large_count = (seed + 2) % 5;
    every->c = (int8_t)(-5 - seed % 50);
    every->uc = (uint8_t)(200 + seed % 50);
    every->hd = (int16_t)(-30000 + seed);
    every->uhd = (uint16_t)(60000 + seed);
    every->d = -2000000000 + (int32_t)seed;
    every->ud = 4000000000u + seed;
    every->ld = -9000000000000000000 + (int64_t)seed;
    every->uld = 18000000000000000000u + seed;
    every->f = 0.5f + (float)seed;
    every->lf = -1e300 + 1e290 * seed;
    /* Lengths from 1 to 20: with and without padding behind them. */
    snprintf(every->text, sizeof every->text, "%.*s", (int)(seed % 20 + 1), "abcdefghijklmnopqrstuvwxyz");
    every->s = every->text;
    for (uint32_t i = 0; i < 3; i++) {
        snprintf(every->texts[i], sizeof every->texts[i], "%.*s", (int)((seed + i) % 9), "string array");
        every->as[i] = every->texts[i];
    }
    for (uint32_t i = 0; i < 4; i++) {
        every->ac[i] = (int8_t)(every->c - (int)i);
        every->auc[i] = (uint8_t)(every->uc - (int)i);
        every->ahd[i] = (int16_t)(every->hd - (int)i);
        every->auhd[i] = (uint16_t)(every->uhd - (int)i);
        every->ad[i] = (int32_t)(every->d - (int)i);
        every->aud[i] = (uint32_t)(every->ud - (int)i);
        every->ald[i] = (int64_t)(every->ld - (int)i);
        every->auld[i] = (uint64_t)(every->uld - (int)i);
        every->af[i] = (float)(every->f / 2 + (float)i);
        every->alf[i] = (double)(every->lf / 2 + i);
    }
}

static inline uint32_t text_count(uint32_t count)
{
    return count > 3 ? 3 : count;
}

/* The arguments of EVERY_DIRECTIVE. */
#define EVERY(e) \
    (e)->c, (e)->uc, (e)->hd, (e)->uhd, (e)->d, (e)->ud, (e)->ld, (e)->uld, \
    (e)->f, (e)->lf, (e)->s, \
    (e)->ac, (e)->count, \
    (e)->auc, (e)->count, \
    (e)->ahd, (e)->count, \
    (e)->auhd, (e)->count, \
    (e)->ad, (e)->count, \
    (e)->aud, (e)->count, \
    (e)->ald, (e)->count, \
    (e)->auld, (e)->count, \
    (e)->af, (e)->count, \
    (e)->alf, (e)->count, \
    (e)->as, text_count((e)->count), \
    (e)->ac, (e)->large_count, \
    (e)->auc, (e)->large_count, \
    (e)->ahd, (e)->large_count, \
    (e)->auhd, (e)->large_count, \
    (e)->ad, (e)->large_count, \
    (e)->aud, (e)->large_count, \
    (e)->ald, (e)->large_count, \
    (e)->auld, (e)->large_count, \
    (e)->af, (e)->large_count, \
    (e)->alf, (e)->large_count, \
    (e)->as, (uint64_t)text_count((uint32_t)(e)->large_count)

static inline void check_texts(const char *const *read, uint64_t count, const struct every *every,
                               uint64_t wanted)
{
    CHECK(count == text_count((uint32_t)wanted));
    for (uint64_t i = 0; i < count; i++)
        CHECK(strcmp(read[i], every->as[i]) == 0);
}

/* An array that was read is the one that was sent, and lies where its type may. */
#define CHECK_ARRAY(read, read_count, sent, sent_count) \
    do { \
        CHECK((read_count) == (sent_count)); \
        CHECK((uintptr_t)(read) % sizeof *(read) == 0); \
        CHECK((sent_count) == 0 || memcmp(read, sent, (sent_count) * sizeof *(read)) == 0); \
    } while (0)

/* Leaves out the values of the arrays of one kind. */
#define SKIP_SCALARS NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
#define SKIP_ARRAYS SKIP_SCALARS, SKIP_SCALARS

static inline void check_scalars(const sapwood_packet_t *packet, const struct every *every)
{
    sapwood_error_t error;
    struct every read;
    memset(&read, 0, sizeof read);
    OK(sapwood_packet_read(packet, &error, EVERY_DIRECTIVE,
                           &read.c, &read.uc, &read.hd, &read.uhd, &read.d, &read.ud,
                           &read.ld, &read.uld, &read.f, &read.lf, &read.s, SKIP_ARRAYS, SKIP_ARRAYS));
    CHECK(read.c == every->c);
    CHECK(read.uc == every->uc);
    CHECK(read.hd == every->hd);
    CHECK(read.uhd == every->uhd);
    CHECK(read.d == every->d);
    CHECK(read.ud == every->ud);
    CHECK(read.ld == every->ld);
    CHECK(read.uld == every->uld);
    CHECK(read.f == every->f);
    CHECK(read.lf == every->lf);
    CHECK(strcmp(read.s, every->s) == 0);
}

static inline void check_arrays(const sapwood_packet_t *packet, const struct every *every)
{
    sapwood_error_t error;
    const int8_t *c = NULL;
    const uint8_t *uc = NULL;
    const int16_t *hd = NULL;
    const uint16_t *uhd = NULL;
    const int32_t *d = NULL;
    const uint32_t *ud = NULL;
    const int64_t *ld = NULL;
    const uint64_t *uld = NULL;
    const float *f = NULL;
    const double *lf = NULL;
    const char *const *s = NULL;
    uint32_t counts[11] = {0};
    OK(sapwood_packet_read(packet, &error, EVERY_DIRECTIVE, SKIP_SCALARS,
                           &c, &counts[0],
                           &uc, &counts[1],
                           &hd, &counts[2],
                           &uhd, &counts[3],
                           &d, &counts[4],
                           &ud, &counts[5],
                           &ld, &counts[6],
                           &uld, &counts[7],
                           &f, &counts[8],
                           &lf, &counts[9],
                           &s, &counts[10], SKIP_ARRAYS));
    CHECK_ARRAY(c, counts[0], every->ac, every->count);
    CHECK_ARRAY(uc, counts[1], every->auc, every->count);
    CHECK_ARRAY(hd, counts[2], every->ahd, every->count);
    CHECK_ARRAY(uhd, counts[3], every->auhd, every->count);
    CHECK_ARRAY(d, counts[4], every->ad, every->count);
    CHECK_ARRAY(ud, counts[5], every->aud, every->count);
    CHECK_ARRAY(ld, counts[6], every->ald, every->count);
    CHECK_ARRAY(uld, counts[7], every->auld, every->count);
    CHECK_ARRAY(f, counts[8], every->af, every->count);
    CHECK_ARRAY(lf, counts[9], every->alf, every->count);
    check_texts(s, counts[10], every, every->count);
}

static inline void check_large_arrays(const sapwood_packet_t *packet, const struct every *every)
{
    sapwood_error_t error;
    const int8_t *c = NULL;
    const uint8_t *uc = NULL;
    const int16_t *hd = NULL;
    const uint16_t *uhd = NULL;
    const int32_t *d = NULL;
    const uint32_t *ud = NULL;
    const int64_t *ld = NULL;
    const uint64_t *uld = NULL;
    const float *f = NULL;
    const double *lf = NULL;
    const char *const *s = NULL;
    uint64_t counts[11] = {0};
    OK(sapwood_packet_read(packet, &error, EVERY_DIRECTIVE, SKIP_SCALARS, SKIP_ARRAYS,
                           &c, &counts[0],
                           &uc, &counts[1],
                           &hd, &counts[2],
                           &uhd, &counts[3],
                           &d, &counts[4],
                           &ud, &counts[5],
                           &ld, &counts[6],
                           &uld, &counts[7],
                           &f, &counts[8],
                           &lf, &counts[9],
                           &s, &counts[10]));
    CHECK_ARRAY(c, counts[0], every->ac, every->large_count);
    CHECK_ARRAY(uc, counts[1], every->auc, every->large_count);
    CHECK_ARRAY(hd, counts[2], every->ahd, every->large_count);
    CHECK_ARRAY(uhd, counts[3], every->auhd, every->large_count);
    CHECK_ARRAY(d, counts[4], every->ad, every->large_count);
    CHECK_ARRAY(ud, counts[5], every->aud, every->large_count);
    CHECK_ARRAY(ld, counts[6], every->ald, every->large_count);
    CHECK_ARRAY(uld, counts[7], every->auld, every->large_count);
    CHECK_ARRAY(f, counts[8], every->af, every->large_count);
    CHECK_ARRAY(lf, counts[9], every->alf, every->large_count);
    check_texts(s, counts[10], every, every->large_count);
}

/* The packet holds what `fill` makes of the seed. */
static inline void check_every(const sapwood_packet_t *packet, uint32_t seed)
{
    struct every every;
    fill(&every, seed);
    CHECK(strcmp(sapwood_packet_format(packet), EVERY_DIRECTIVE) == 0);
    check_scalars(packet, &every);
    check_arrays(packet, &every);
    check_large_arrays(packet, &every);
}

#endif
