/* SPDX-License-Identifier: Apache-2.0
 *
 * Prepares the chunk's rows of q, k and v for attention, one head at a time:
 *
 *     u = x / sqrt(mean(x^2) + epsilon) * gamma                       if there is a gamma
 *     y[i]       = u[i] cos[i] - u[i + R/2] sin[i]                    i < R/2, q and k
 *     y[i + R/2] = u[i + R/2] cos[i + R/2] + u[i] sin[i + R/2]
 *     y[i]       = u[i]                                               i >= R, and all of v
 *
 * q is written to q_out, k and v to their pages; a position without a page is dropped. Rows for a
 * cache of type i8 or u4 are rotated first (rotation.h), and so is q for such keys. A block of 16
 * is quantised to
 *
 *     i8    q = y / s, rounded to nearest
 *     u4    the q whose level, times s, is nearest
 *
 * For i8, s is the least scale whose 127 reaches the largest magnitude. For u4, six candidates are
 * tried: the least scale whose 11055 reaches the largest magnitude, the next one above it and the
 * one below it, each with both sets of levels; the one with the least sum of squared errors wins.
 * The errors are summed as integers, so that the order of addition does not matter.
 *
 * Rows are numbered (token, head): each token has q_heads heads of q (0: q is not changed), then
 * kv_heads of k and as many of v (0: another layer has written them). R is `rotated`, 0 without
 * tables; table_tokens is B T, or T for tables that all sequences share. Rows are below 2^31:
 * divisions of 64 bits are long loops on some GPUs.
 *
 *   SRC                                             type of q, k, v
 *   K_CACHE, V_CACHE, D, DV, HEADS_KV, PAGE_TOKENS  as in attention_cache.h
 */
#include "attention_cache.h"
#include "rotation.h"

#ifndef SRC
#define SRC f32
#endif

/* Parameters of the kernels. */
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

/* One row: its source, its norm and rotation, its destination. */
struct input_row {
    __global const STORAGE(SRC) * x;
    __global const float *gamma;           /* NULL: no norm */
    __global const float *cosines, *sines; /* tables of its token */
    int n, rotated;
    __global STORAGE(SRC) * q_out; /* destination of a row of q; NULL: a row of k or v */
    struct cached to;              /* destination of a row of k or v; NULL: none */
    int type;                      /* of the destination cache: IS_f16 … */
    int block;                     /* elements that are rotated together          */
};

/* Cache types as numbers. */
#define IS_f16       0
#define IS_f32       1
#define IS_i8        2
#define IS_u4        3
#define IS(T)        PASTE(IS_, T)
#define ANY_IS(type) (IS(K_CACHE) == type || IS(V_CACHE) == type)
#define ANY_SCALES   (HAS_SCALES(K_CACHE) || HAS_SCALES(V_CACHE))
#define MOST_ELEMENTS (D > DV ? D : DV) /* of the longest row */

/* Returns where the angles of a token begin in the tables. */
static inline ulong
first_angle(const struct inputs *in, uint token)
{
    return (ulong)(token % (uint)in->table_tokens) * in->rotated;
}

static inline struct input_row
query_row(const struct inputs *in, uint token, int head)
{
    const ulong at = ((ulong)token * in->q_heads + head) * D;
    const ulong angles = first_angle(in, token);
    const struct input_row r = {in->q + at,         in->q_gamma, in->cosines + angles,
                                in->sines + angles, D,           in->rotated,
                                in->q_out + at,     {0, 0},      IS(K_CACHE),
                                KEY_ROTATION};
    return r;
}

static inline struct input_row
cached_row(const struct inputs *in, uint token, int head, bool is_v)
{
    const int n = is_v ? DV : D;
    const struct sequence s =
        sequence_at(&in->cache, find_sequence(&in->cache, 0, in->sequences, 1, 0, token));
    const int position = s.past + (int)token - s.begin;
    __global uchar *page = page_of(&in->cache, &s, position);
    const uint row = page_row(head, position);
    const struct cached nowhere = {0, 0};
    const ulong angles = first_angle(in, token);
    const struct input_row r = {
        (is_v ? in->v : in->k) + ((ulong)token * in->kv_heads + head) * n,
        is_v ? in->v_gamma : in->k_gamma,
        in->cosines + angles,
        in->sines + angles,
        n,
        is_v ? 0 : in->rotated,
        0,
        !page  ? nowhere
        : is_v ? value_row(page, row)
               : key_row(page, row),
        is_v ? IS(V_CACHE) : IS(K_CACHE),
        is_v ? VALUE_ROTATION : KEY_ROTATION};
    return r;
}

static inline struct input_row
find_row(const struct inputs *in, uint id)
{
    const uint heads = (uint)(in->q_heads + 2 * in->kv_heads), token = id / heads;
    const int head = (int)(id % heads);
    if (head < in->q_heads)
        return query_row(in, token, head);
    const int cached = head - in->q_heads;
    return cached_row(in, token, cached % in->kv_heads, cached >= in->kv_heads);
}

/* Returns the factor of the norm, from the sum of squares of the row. */
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

/* Returns element i of the normed and rotated row. */
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

/* Stores element i of a row of q, or of a row for a cache without scales. */
static inline void
store_finished(const struct input_row *r, int i, float y)
{
    __global uchar *to = r->to.values;
    if (r->q_out)
        STORE(SRC, r->q_out, i, y);
    else if (to && r->type == IS_f16)
        STORE_f16((__global half *)to, i, y);
    else if (to && r->type == IS_f32)
        STORE_f32((__global float *)to, i, y);
}

/* Returns whether the row is written to a cache with scales. */
static inline bool
has_scales(const struct input_row *r)
{
    return (r->type == IS_i8 || r->type == IS_u4) && !r->q_out;
}

/* Returns the number e of the least scale that is not below x, at most `last`; 0 if x is far below
 * all other scales. */
static inline int
scale_not_below(float x, uint first, int last)
{
    const float least = as_float(first << 20);
    const int e = (int)((as_uint(x + least) + 0xfffff) >> 20) - (int)first;
    return x * 128.0f < least ? 0 : clamp(e, 1, last);
}

static inline float
inverse_of(float scale)
{
    return scale > 0.0f ? 1.0f / scale : 0.0f;
}

static inline int
byte_of_i8(float most)
{
    return scale_not_below(most * (1.0f / 127.0f), FIRST_SCALE_i8, 255);
}

/* Defines a function that returns the 4-bit q whose level is nearest to x / scale: it compares with
 * the middle between two levels. */
#define IN_4_BITS(name, FLOAT)                                                           \
    static inline FLOAT name(FLOAT x, float centre)                                      \
    {                                                                                    \
        FLOAT q = 0.0f;                                                                  \
        _Pragma("unroll") for (int bit = 8; bit > 0; bit /= 2)                           \
        {                                                                                \
            const FLOAT n = 2.0f * q + (centre + (float)(2 * bit - 1));                  \
            q += x > n * (n * n + 515.0f) ? (FLOAT)bit : (FLOAT)0.0f;                    \
        }                                                                                \
        return q;                                                                        \
    }
IN_4_BITS(in_4_bits, float)
IN_4_BITS(all_in_4_bits, float16)

/* Returns the difference between x and the level of q, in units of the scale, rounded. */
static inline int
off_by(float x, float q, float centre)
{
    return convert_int_rte(clamp(x - level(q, centre), -8191.0f, 8191.0f));
}

/* Returns the squared error of a block from its sum of squares of off_by. */
static inline float
worth(int squares, float scale)
{
    return (float)squares * (scale * scale);
}

/* Returns the number of the first candidate scale of a block of u4. */
static inline int
scale_of_4_bits(float most)
{
    return scale_not_below(most * (1.0f / 11055.0f), FIRST_SCALE_u4, 127);
}

#define TRIED 6 /* candidates: that scale and its two neighbours, each with both sets of levels */

/* Returns the scale byte of candidate i. */
static inline uint
tried_byte(int first, int i)
{
    return first ? (uint)clamp(first + (i >= 4 ? -1 : i / 2), 1, 127) * 2 + i % 2 : 0;
}

static inline int
sum_of_squares(int16 x)
{
    const int16 squares = x * x;
    const int8 a = squares.lo + squares.hi;
    const int4 b = a.lo + a.hi;
    return b.x + b.y + b.z + b.w;
}

static inline float
largest(float16 y)
{
    const float16 size = fabs(y);
    const float8 a = fmax(size.lo, size.hi);
    const float4 b = fmax(a.lo, a.hi);
    return fmax(fmax(b.x, b.y), fmax(b.z, b.w));
}

/* Returns the 4-bit numbers of a block; writes its scale byte. */
static inline uchar16
block_in_4_bits(float16 y, __global uchar *byte)
{
    const int first = scale_of_4_bits(largest(y));
    float16 best = 0.0f;
    uint best_byte = 0;
    float least = INFINITY;
    for (int i = 0; i < TRIED; i++) {
        const uint tried = tried_byte(first, i);
        const struct block b = block_u4(tried);
        const float16 x = y * inverse_of(b.scale);
        const float16 q = all_in_4_bits(x, b.centre);
        const float16 off =
            clamp(x - levels16(q, b.centre), (float16)-8191.0f, (float16)8191.0f);
        const float w = worth(sum_of_squares(convert_int16_rte(off)), b.scale);
        best = w < least ? q : best;
        best_byte = w < least ? tried : best_byte;
        least = fmin(w, least);
    }
    *byte = (uchar)best_byte;
    return convert_uchar16(best);
}

/* Stores 32 elements from `first` on of a normed and rotated row in a cache with scales. */
static inline void
store_32(const struct input_row *r, int first, const float *y)
{
    const int block = first / CACHE_BLOCK, n = min(32, r->n - first);
    if (r->type == IS_u4) {
        const uchar16 low = block_in_4_bits(vload16(0, y), r->to.scales + block),
                      high = block_in_4_bits(vload16(1, y), r->to.scales + block + 1);
        vstore16(low | high << (uchar)4, 0, r->to.values + first / 2);
        return;
    }
    for (int b = 0; b < n; b += CACHE_BLOCK) {
        float most = 0.0f;
        for (int i = b; i < min(b + CACHE_BLOCK, n); i++)
            most = fmax(most, fabs(y[i]));
        const int byte = byte_of_i8(most);
        const float inverse = inverse_of(block_i8(byte).scale);
        r->to.scales[block + b / CACHE_BLOCK] = (uchar)byte;
        for (int i = b; i < min(b + CACHE_BLOCK, n); i++)
            ((__global char *)r->to.values)[first + i] =
                convert_char_sat_rte(y[i] * inverse);
    }
}
