/* SPDX-License-Identifier: Apache-2.0
 *
 * What happens to the chunk's rows of q, k and v before attention reads them, a head at a time:
 *
 *     u = x / sqrt(mean(x^2) + epsilon) * gamma                       where there is a gamma
 *     y[i]       = u[i] cos[i] - u[i + R/2] sin[i]                    i < R/2, q and k
 *     y[i + R/2] = u[i + R/2] cos[i + R/2] + u[i] sin[i + R/2]
 *     y[i]       = u[i]                                               i >= R, and all of v
 *
 * q goes to q_out; k and v go to their pages, i8 caches as y / s with s = max|y| / 127 of the
 * row beside them. A position without a page is not kept.
 *
 * Rows count through (row of tokens, head): q_heads of q (0: q is read as it is), then kv_heads of
 * k and as many of v (0: another layer has written them). R is `rotated`, 0 without tables;
 * table_tokens is B T, or T for tables that all sequences share.
 *
 *   SRC                                  of q, k, v
 *   CACHE, D, DV, HEADS_KV, PAGE_TOKENS  as in attention_cache.h
 */
#include "attention_cache.h"

#ifndef SRC
#define SRC f32
#endif

/* Operands by name. */
#define INPUT_PARAMETERS                                                                 \
    __global const STORAGE(SRC) * q, __global const STORAGE(SRC) * k,                    \
        __global const STORAGE(SRC) * v, __global STORAGE(SRC) * q_out,                  \
        CACHE_PARAMETERS, int sequences, __global const float *cosines,                  \
        __global const float *sines, __global const float *q_gamma,                      \
        __global const float *k_gamma, __global const float *v_gamma, ulong rows,        \
        ulong table_tokens, int rotated, int q_heads, int kv_heads, float epsilon

struct inputs {
    __global const STORAGE(SRC) * q, *k, *v;
    __global STORAGE(SRC) * q_out;
    struct cache cache;
    int sequences;
    __global const float *cosines, *sines, *q_gamma, *k_gamma, *v_gamma;
    ulong table_tokens;
    int rotated, q_heads, kv_heads;
};

#define INPUT_ARGUMENTS                                                                  \
    {                                                                                    \
        q, k, v, q_out, CACHE_ARGUMENTS, sequences, cosines, sines, q_gamma, k_gamma,    \
            v_gamma, table_tokens, rotated, q_heads, kv_heads                            \
    }

/* One row: where it comes from, what is done to it, where it goes. */
struct input_row {
    __global const STORAGE(SRC) * x;
    __global const float *gamma;           /* NULL: no norm */
    __global const float *cosines, *sines; /* of its token */
    int n, rotated;
    __global STORAGE(SRC) * q_out;   /* a row of q goes here, NULL for the others, */
    __global STORAGE(CACHE) * cache; /* which go here; NULL: nowhere */
    __global float *scale;           /* i8 caches: of the row */
};

static inline struct input_row
query_row(const struct inputs *in, ulong token, int head)
{
    const ulong at = (token * in->q_heads + head) * D;
    const ulong angles = token % in->table_tokens * in->rotated;
    const struct input_row r = {in->q + at,         in->q_gamma, in->cosines + angles,
                                in->sines + angles, D,           in->rotated,
                                in->q_out + at,     0,           0};
    return r;
}

static inline struct input_row
cached_row(const struct inputs *in, ulong token, int head, bool is_v)
{
    const int n = is_v ? DV : D;
    const struct sequence s =
        sequence_at(&in->cache, find_sequence(&in->cache, 0, in->sequences, 1, 0, token));
    const int position = s.past + (int)token - s.begin;
    __global uchar *page = page_of(&in->cache, &s, position);
    const uint row = page_row(head, position);
    const ulong angles = token % in->table_tokens * in->rotated;
    const struct input_row r = {
        (is_v ? in->v : in->k) + (token * in->kv_heads + head) * n,
        is_v ? in->v_gamma : in->k_gamma,
        in->cosines + angles,
        in->sines + angles,
        n,
        is_v ? 0 : in->rotated,
        0,
        page ? is_v ? value_row(page, row) : key_row(page, row) : 0,
        page ? is_v ? value_scale(page, row) : key_scale(page, row) : 0};
    return r;
}

static inline struct input_row
find_row(const struct inputs *in, ulong id)
{
    const int heads = in->q_heads + 2 * in->kv_heads, head = (int)(id % heads);
    const ulong token = id / heads;
    if (head < in->q_heads)
        return query_row(in, token, head);
    const int cached = head - in->q_heads;
    return cached_row(in, token, cached % in->kv_heads, cached >= in->kv_heads);
}

/* What the norm multiplies with, from the sum of squares. */
static inline float
norm_factor(const struct input_row *r, float squares, float epsilon)
{
    return r->gamma ? 1.0f / sqrt(squares / r->n + epsilon) : 1.0f;
}

static inline float
normed(const struct input_row *r, int i, float factor)
{
    const float x = LOAD(SRC, r->x, i) * factor;
    return r->gamma ? x * r->gamma[i] : x;
}

/* Element i of the finished row. */
static inline float
finished(const struct input_row *r, int i, float factor)
{
    const float u = normed(r, i, factor);
    if (i >= r->rotated)
        return u;
    const int half_r = r->rotated / 2;
    const float other =
        i < half_r ? -normed(r, i + half_r, factor) : normed(r, i - half_r, factor);
    return u * r->cosines[i] + other * r->sines[i];
}

/* For i8: what the row is multiplied with, from its largest magnitude. */
static inline float
inverse_scale(float most)
{
    return most > 0.0f ? 127.0f / most : 0.0f;
}

static inline void
store_finished(const struct input_row *r, int i, float y, float inverse)
{
    if (r->q_out)
        STORE(SRC, r->q_out, i, y);
    else if (r->cache)
#if CACHE_SCALED
        r->cache[i] = convert_char_sat_rte(y * inverse);
#else
        STORE(CACHE, r->cache, i, y);
#endif
}
