/* SPDX-License-Identifier: Apache-2.0
 *
 * What happens to the chunk's rows of q, k and v before attention reads them, a head at a time:
 *
 *     u = x / sqrt(mean(x^2) + epsilon) * gamma                       where there is a gamma
 *     y[i]       = u[i] cos[i] - u[i + R/2] sin[i]                    i < R/2, q and k
 *     y[i + R/2] = u[i + R/2] cos[i + R/2] + u[i] sin[i + R/2]
 *     y[i]       = u[i]                                               i >= R, and all of v
 *
 * q goes to q_out; k and v go to their pages. A position without a page is not kept. Caches of
 * fewer bits have
 *
 *     i8    y / s              rounded to nearest, s = max|y| / 127 of the row
 *     u4    y / d + 8.5        truncated, 15 at most, of a block; d = m / -8, where m is the first
 *                              of its elements that have the largest magnitude
 *
 * Rows count through (row of tokens, head): q_heads of q (0: q is read as it is), then kv_heads of
 * k and as many of v (0: another layer has written them). R is `rotated`, 0 without tables;
 * table_tokens is B T, or T for tables that all sequences share.
 *
 *   SRC                                             of q, k, v
 *   K_CACHE, V_CACHE, D, DV, HEADS_KV, PAGE_TOKENS  as in attention_cache.h
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
    __global STORAGE(SRC) * q_out; /* a row of q goes here, NULL for the others, */
    struct cached to;              /* which go here; NULL: nowhere                */
    int type;                      /* of the cache: IS_f16 …                      */
};

/* Types of caches as numbers; those of K and V are one where a program has one. */
#define IS_f16       0
#define IS_f32       1
#define IS_i8        2
#define IS_u4        3
#define IS(T)        PASTE(IS_, T)
#define ANY_IS(type) (IS(K_CACHE) == type || IS(V_CACHE) == type)

static inline struct input_row
query_row(const struct inputs *in, ulong token, int head)
{
    const ulong at = (token * in->q_heads + head) * D;
    const ulong angles = token % in->table_tokens * in->rotated;
    const struct input_row r = {in->q + at,         in->q_gamma, in->cosines + angles,
                                in->sines + angles, D,           in->rotated,
                                in->q_out + at,     {0, 0},      IS(K_CACHE)};
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
    const struct cached nowhere = {0, 0};
    const ulong angles = token % in->table_tokens * in->rotated;
    const struct input_row r = {
        (is_v ? in->v : in->k) + (token * in->kv_heads + head) * n,
        is_v ? in->v_gamma : in->k_gamma,
        in->cosines + angles,
        in->sines + angles,
        n,
        is_v ? 0 : in->rotated,
        0,
        !page  ? nowhere
        : is_v ? value_row(page, row)
               : key_row(page, row),
        is_v ? IS(V_CACHE) : IS(K_CACHE)};
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

/* ---- where a row goes --------------------------------------------------------------- */

/* For i8: what the row is multiplied with, from its largest magnitude. */
static inline float
inverse_scale(float most)
{
    return most > 0.0f ? 127.0f / most : 0.0f;
}

/* For i8: the row's scale, from its largest magnitude. */
static inline void
store_row_scale(const struct input_row *r, float most)
{
    if (r->type == IS_i8 && r->to.values)
        ((__global float *)r->to.scales)[0] = most / 127.0f;
}

/* Element i of a row that does not go to a cache in blocks. */
static inline void
store_finished(const struct input_row *r, int i, float y, float inverse)
{
    __global uchar *to = r->to.values;
    if (r->q_out)
        STORE(SRC, r->q_out, i, y);
    else if (to && r->type == IS_f16)
        STORE_f16((__global half *)to, i, y);
    else if (to && r->type == IS_f32)
        STORE_f32((__global float *)to, i, y);
    else if (to && r->type == IS_i8)
        ((__global char *)to)[i] = convert_char_sat_rte(y * inverse);
}

/* Whether the row goes to a cache in blocks. */
static inline bool
is_in_blocks(const struct input_row *r)
{
    return r->type == IS_u4 && !r->q_out;
}

/* What the elements of a block are multiplied with; stores its scale. */
static inline float
begin_block(const struct input_row *r, int block, float most)
{
    const float d = most / -8.0f;
    vstore_half(d, block, (__global half *)r->to.scales);
    return d != 0.0f ? 1.0f / d : 0.0f;
}

/* Element y in 4 bits. As ggml has it: a product and a sum, each rounded. */
static inline uint
in_4_bits(float y, float inverse)
{
#pragma OPENCL FP_CONTRACT OFF
    return (uint)min(15, (int)(y * inverse + 8.5f)) & 15;
}

/* Elements i and i + 16 of a block, i < 16. */
static inline void
store_pair(const struct input_row *r, int block, int i, float y, float y16, float inverse)
{
    r->to.values[block * 16 + i] =
        (uchar)(in_4_bits(y, inverse) | in_4_bits(y16, inverse) << 4);
}

/* A block from its elements. */
static inline void
store_block(const struct input_row *r, int block, const float *y)
{
    float most = 0.0f;
    for (int i = 0; i < CACHE_BLOCK; i++)
        most = fabs(y[i]) > fabs(most) ? y[i] : most;
    const float inverse = begin_block(r, block, most);
    for (int i = 0; i < 16; i++)
        store_pair(r, block, i, y[i], y[i + 16], inverse);
}

/* The blocks first, first + step … of the finished row, one after the other. */
static inline void
store_blocks(const struct input_row *r, float factor, int first, int step)
{
    for (int b = first; r->to.values && b < r->n / CACHE_BLOCK; b += step) {
        float y[CACHE_BLOCK];
        for (int i = 0; i < CACHE_BLOCK; i++)
            y[i] = finished(r, b * CACHE_BLOCK + i, factor);
        store_block(r, b, y);
    }
}
