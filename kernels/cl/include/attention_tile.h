/* SPDX-License-Identifier: Apache-2.0
 *
 * A tile of query rows against tiles of keys, with explicit vectors.
 *
 *   rows    TILE_TOKENS tokens times the GROUP_HEADS heads that share one head of K and V: a
 *           page is read and converted once for all of them
 *   keys    TILE_KEYS at a time, as floats in a private buffer (first-level cache)
 *   scores  16 keys by one row: 16 accumulators over D, then a tree of pairwise sums
 *   values  8 rows by 16 elements of V: 8 accumulators over the keys of the tile
 *
 * Heads are padded to whole vectors with zeros.
 */
#include "attention.h"
#include "rotation.h"
#include "vector.h"

#ifndef TILE_TOKENS
#define TILE_TOKENS 4
#endif
#define TILE_KEYS 32
#define TILE_ROWS (TILE_TOKENS * GROUP_HEADS)
#define VALUE_ROWS 8
#define D_PAD ((D + 15) / 16 * 16)
#define DV_PAD ((DV + 15) / 16 * 16)

struct rows {
    struct sequence s;
    int head_kv, first_token, n; /* n: TILE_ROWS, or fewer at the end of the sequence */
    float q[TILE_ROWS * D_PAD];     /* scaled                                         */
    float o[TILE_ROWS * DV_PAD];
    float m[TILE_ROWS], l[TILE_ROWS];
    float p[TILE_ROWS * TILE_KEYS]; /* e^(score - m) of the keys of the tile          */
};

struct keys {
    int first;
    float k[TILE_KEYS * D_PAD];
    float v[TILE_KEYS * DV_PAD];
    float bias[TILE_KEYS]; /* 0, or -infinity where nobody sees the key             */
};

static int
row_token(const struct rows *r, int i)
{
    return r->first_token + i / GROUP_HEADS;
}

static int
row_head(const struct rows *r, int i)
{
    return r->head_kv * GROUP_HEADS + i % GROUP_HEADS;
}

/* Where row i lies among the rows (row, head) of q and the result. */
static ulong
row_index(const struct rows *r, int i)
{
    return (ulong)(r->s.begin + row_token(r, i)) * HEADS_Q + row_head(r, i);
}

/* `tokens` of r->s, from first_token on. */
static void
begin_rows(const struct attention *a, struct rows *r, int head_kv, int first_token,
           int tokens)
{
    r->head_kv = head_kv;
    r->first_token = first_token;
    r->n = tokens * GROUP_HEADS;
    for (int i = 0; i < r->n; i++) {
        const ulong from = row_index(r, i) * D;
        r->m[i] = -INFINITY;
        r->l[i] = 0.0f;
        int d = 0;
        for (; d + 16 <= D; d += 16)
            vstore16(LOAD16(SRC, a->q, from + d) * a->scale, 0, r->q + i * D_PAD + d);
        for (; d < D_PAD; d++)
            r->q[i * D_PAD + d] = d < D ? LOAD(SRC, a->q, from + d) * a->scale : 0.0f;
        for (d = 0; d < DV_PAD; d += 16)
            vstore16((float16)0.0f, 0, r->o + i * DV_PAD + d);
    }
}

/* 32 elements of a row of u4, from i on. */
static inline void
load_packed(struct cached from, int i, float *to)
{
    const int16 q = convert_int16(vload16(i / 32, from.values));
    const struct block low = BLOCK_u4(from, i), high = BLOCK_u4(from, i + 16);
    vstore16(levels16(convert_float16(q & 15), low.centre) * low.scale, 0, to);
    vstore16(levels16(convert_float16(q >> 4), high.centre) * high.scale, 1, to);
}

/* A function that loads the n elements of a row of a cache of type T, zeros up to whole vectors. */
#define LOADER(name, T)                                                                  \
    static void name(struct cached from, int n, float *to)                               \
    {                                                                                    \
        int i = 0;                                                                       \
        for (; IS_4_BITS(T) && i < n; i += 32)                                           \
            load_packed(from, i, to + i);                                                \
        for (; i + 16 <= n; i += 16)                                                     \
            vstore16(CACHED16(T, from, i), 0, to + i);                                   \
        if (i == n)                                                                      \
            return;                                                                      \
        vstore16((float16)0.0f, 0, to + i);                                              \
        for (; i < n; i++)                                                               \
            to[i] = CACHED(T, from, i);                                                  \
    }
LOADER(load_key, K_CACHE)
LOADER(load_value, V_CACHE)

static void
clear(float *to, int n)
{
    for (int i = 0; i < n; i += 16)
        vstore16((float16)0.0f, 0, to + i);
}

/* The keys [first, end), at most TILE_KEYS; those nobody sees are zeros and biased away. */
static void
load_keys(const struct attention *a, const struct rows *r, struct keys *t, int first,
          int end)
{
    __global uchar *page = 0;
    t->first = first;
    for (int j = 0; j < TILE_KEYS; j++) {
        const int at = first + j;
        const uint row = page_row(r->head_kv, at);
        if (at < end && (j == 0 || at % PAGE_TOKENS == 0))
            page = page_of(&a->cache, &r->s, at);
        const bool seen = page && at < end && !is_padding(a, &r->s, at);
        t->bias[j] = seen ? 0.0f : -INFINITY;
        if (!seen) {
            clear(t->k + j * D_PAD, D_PAD);
            clear(t->v + j * DV_PAD, DV_PAD);
            continue;
        }
        load_key(key_row(page, row), D, t->k + j * D_PAD);
        load_value(value_row(page, row), DV, t->v + j * DV_PAD);
    }
}

/* The dot products of q with 16 rows of k. */
static float16
dots(const float *q, const float *k)
{
    float16 s[16];
#pragma unroll
    for (int j = 0; j < 16; j++)
        s[j] = 0.0f;
    for (int d = 0; d < D_PAD; d += 16) {
        const float16 x = vload16(0, q + d);
#pragma unroll
        for (int j = 0; j < 16; j++)
            s[j] += x * vload16(0, k + j * D_PAD + d);
    }
#pragma unroll
    for (int j = 0; j < 8; j++)
        s[j] = sum_pairs(s[2 * j], s[2 * j + 1]);
#pragma unroll
    for (int j = 0; j < 4; j++)
        s[j] = sum_pairs(s[2 * j], s[2 * j + 1]);
    s[0] = sum_pairs(s[0], s[1]);
    s[1] = sum_pairs(s[2], s[3]);
    return sum_pairs(s[0], s[1]);
}

/* The scores of row i with 16 keys of the tile from key `at` on. */
static float16
scores(const struct attention *a, const struct rows *r, const struct keys *t, int i, int at)
{
    const int16 lane = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const int token = row_token(r, i);
    const int first = t->first + at;
    const int low = clamp(first_seen(a, &r->s, token) - first, 0, 16);
    const int end = clamp(end_seen(&r->s, token) - first, 0, 16);
    float16 s = dots(r->q + i * D_PAD, t->k + at * D_PAD);
    if (a->soft_cap != 0.0f)
        s = a->soft_cap * tanh(s / a->soft_cap);
    s += vload16(0, t->bias + at);
    if (a->mask_bits) {
        float added[16];
        for (int j = 0; j < 16; j++)
            added[j] = first + j < r->s.keys
                           ? mask_at(a, &r->s, row_head(r, i), token, first + j)
                           : 0.0f;
        s += vload16(0, added);
    }
    return low == 0 && end == 16 ? s : lane >= low && lane < end ? s : (float16)-INFINITY;
}

/* Scores of row i, and the online softmax's step. */
static void
weigh_row(const struct attention *a, struct rows *r, const struct keys *t, int i)
{
    const float16 s0 = scores(a, r, t, i, 0), s1 = scores(a, r, t, i, 16);
    const float m = fmax(r->m[i], max16(fmax(s0, s1)));
    float *p = r->p + i * TILE_KEYS;
    if (m == -INFINITY) {
        clear(p, TILE_KEYS);
        return;
    }
    const float keep = exp(r->m[i] - m);
    const float16 p0 = exp(s0 - m), p1 = exp(s1 - m);
    vstore16(p0, 0, p);
    vstore16(p1, 1, p);
    r->l[i] = r->l[i] * keep + sum16(p0 + p1);
    r->m[i] = m;
    if (keep == 1.0f)
        return;
    for (int d = 0; d < DV_PAD; d += 16)
        vstore16(vload16(0, r->o + i * DV_PAD + d) * keep, 0, r->o + i * DV_PAD + d);
}

/* o += p v for VALUE_ROWS rows. */
static void
add_values(float *o, const float *p, const float *v)
{
    for (int d = 0; d < DV_PAD; d += 16) {
        float16 sum[VALUE_ROWS];
#pragma unroll
        for (int i = 0; i < VALUE_ROWS; i++)
            sum[i] = vload16(0, o + i * DV_PAD + d);
        for (int j = 0; j < TILE_KEYS; j++) {
            const float16 x = vload16(0, v + j * DV_PAD + d);
#pragma unroll
            for (int i = 0; i < VALUE_ROWS; i++)
                sum[i] += p[i * TILE_KEYS + j] * x;
        }
#pragma unroll
        for (int i = 0; i < VALUE_ROWS; i++)
            vstore16(sum[i], 0, o + i * DV_PAD + d);
    }
}

/* The same for one row. */
static void
add_values_row(float *o, const float *p, const float *v)
{
    float16 sum[DV_PAD / 16];
#pragma unroll
    for (int d = 0; d < DV_PAD / 16; d++)
        sum[d] = vload16(d, o);
    for (int j = 0; j < TILE_KEYS; j++) {
#pragma unroll
        for (int d = 0; d < DV_PAD / 16; d++)
            sum[d] += p[j] * vload16(d, v + j * DV_PAD);
    }
#pragma unroll
    for (int d = 0; d < DV_PAD / 16; d++)
        vstore16(sum[d], d, o);
}

/* All rows of the tile against the keys [first, end). */
static void
attend_rows(const struct attention *a, struct rows *r, int first, int end)
{
    struct keys t;
    for (int j = first; j < end; j += TILE_KEYS) {
        int i = 0;
        load_keys(a, r, &t, j, end);
        for (; i < r->n; i++)
            weigh_row(a, r, &t, i);
        for (i = 0; i + VALUE_ROWS <= r->n; i += VALUE_ROWS)
            add_values(r->o + i * DV_PAD, r->p + i * TILE_KEYS, t.v);
        for (; i < r->n; i++)
            add_values_row(r->o + i * DV_PAD, r->p + i * TILE_KEYS, t.v);
    }
}

/* The softmax of row i, complete, and rotated back. */
static void
finish_row(const struct attention *a, struct rows *r, int i, __global STORAGE(SRC) *out)
{
    const ulong to = row_index(r, i) * DV;
    const float norm = row_norm(a, row_head(r, i), r->m[i], r->l[i]);
    int d = 0;
    rotate_vectors(r->o + i * DV_PAD, DV, VALUE_ROTATION);
    for (; d + 16 <= DV; d += 16)
        STORE16(SRC, out, to + d, vload16(0, r->o + i * DV_PAD + d) * norm);
    for (; d < DV; d++)
        STORE(SRC, out, to + d, r->o[i * DV_PAD + d] * norm);
}

/* The keys that any row of the tile sees. */
static int
tile_first(const struct attention *a, const struct rows *r)
{
    return first_seen(a, &r->s, r->first_token);
}

static int
tile_end(const struct rows *r)
{
    return end_seen(&r->s, row_token(r, r->n - 1));
}
