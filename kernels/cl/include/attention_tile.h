/* SPDX-License-Identifier: Apache-2.0
 *
 * A tile of query rows against tiles of keys, with explicit vectors.
 *
 *   rows    TILE_TOKENS tokens times the GROUP_HEADS heads that share one head of K and V: a
 *           page is read and converted once for all of them
 *   keys    TILE_KEYS at a time, turned: a vector has one dimension, or a pair of them, of 16 keys;
 *           halves and floats in attention_floats.h, 16-bit integers in attention_shorts.h. While a
 *           tile is multiplied, the processor fetches the next one.
 *   scores  up to MANY_ROWS rows by WIDTH vectors of keys in registers
 *   values  up to MANY_ROWS rows by WIDTH vectors of V
 *
 * Heads are padded to whole vectors with zeros.
 */
#include "attention.h"
#include "rotation.h"
#include "shorts.h"
#include "turn.h"

#ifndef TILE_TOKENS
#define TILE_TOKENS 4
#endif
#define TILE_KEYS 32
#define TILE_ROWS (TILE_TOKENS * GROUP_HEADS)
#define D_PAD     ((D + 15) / 16 * 16)
#define DV_PAD    ((DV + 15) / 16 * 16)

/* How many rows by how many vectors are summed in registers. */
#ifdef __AVX512F__
#define MANY_ROWS 8
#define WIDTH     2
#else
#define MANY_ROWS 8
#define WIDTH     1
#endif

/* Vectors of 32 shorts. */
#if defined(__AVX512BW__) && defined(__AVX512F__)
#define WIDE_HALVES 1
#define WIDE_SHORTS BYTE_DOTS
typedef short shorts __attribute__((vector_size(64)));

static inline shorts
thirty_two(__global const uchar *p)
{
    return __builtin_astype(((__global const loose_uint16 *)p)->v, shorts);
}

static inline shorts
no_shorts(void)
{
    return __builtin_astype((int16)0, shorts);
}
#else
#define WIDE_HALVES 0
#define WIDE_SHORTS 0
#endif

/* What tiles of keys and of values hold: attention_shorts.h, attention_floats.h. */
#define IS_HALF_f16     1
#define IS_HALF_f32     0
#define IS_HALF_i8      0
#define IS_HALF_u4      0
#define IS_HALF(T)      PASTE(IS_HALF_, T)
#define AS_SHORTS(T, n) (WIDE_SHORTS && IS_HALF(SRC) && HAS_SCALES(T) && (n) % 64 == 0)
#define AS_HALVES(T, n) (WIDE_HALVES && IS_HALF(T) && (n) % 32 == 0)
#if AS_SHORTS(K_CACHE, D)
#define K_SHORTS 1
#else
#define K_SHORTS 0
#endif
#if AS_SHORTS(V_CACHE, DV)
#define V_SHORTS 1
#else
#define V_SHORTS 0
#endif
#if AS_HALVES(K_CACHE, D)
#define K_HALVES 1
#else
#define K_HALVES 0
#endif
#if AS_HALVES(V_CACHE, DV)
#define V_HALVES 1
#else
#define V_HALVES 0
#endif

/* Vectors of an array of floats that begins where a line of the cache does. */
#define LINES   __attribute__((aligned(64)))
#define AT16(p) ((float16 *)(p))

/* The larger; b where either is not a number. */
static inline float16
larger(float16 a, float16 b)
{
    return a > b ? a : b;
}

static inline float
largest16(float16 v)
{
    const float8 a = v.lo > v.hi ? v.lo : v.hi;
    const float4 b = a.lo > a.hi ? a.lo : a.hi;
    const float2 c = b.lo > b.hi ? b.lo : b.hi;
    return c.lo > c.hi ? c.lo : c.hi;
}

#include "attention_floats.h"
#if K_SHORTS || V_SHORTS
#include "attention_shorts.h"
#endif

struct rows {
    struct sequence s;
    int head_kv, first_token, n; /* n: TILE_ROWS, or fewer at the end of the sequence */
    struct queries q;
    struct weights w;
    float o[TILE_ROWS * DV_PAD] LINES;
    float p[TILE_ROWS * TILE_KEYS] LINES; /* scores, then e^(score - m) */
    float16 l[TILE_ROWS];                 /* whose sum is the denominator */
    float m[TILE_ROWS], keep[TILE_ROWS];  /* keep: e^(old m - m) */
};

struct keys {
    int first;
    struct cached key[TILE_KEYS], value[TILE_KEYS]; /* of this tile, then of the next */
    float bias[TILE_KEYS] LINES;   /* of theirs: 0; -infinity: nobody sees it: any rows */
    float hidden[TILE_KEYS] LINES; /* the same of this tile */
    struct key_tile k;
    struct value_tile v;
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

static void
clear(float *to, int n)
{
    for (int i = 0; i < n; i += 16)
        *AT16(to + i) = 0.0f;
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
        r->m[i] = -INFINITY;
        r->l[i] = 0.0f;
        put_query(&r->q, i, a->q + row_index(r, i) * D, a->scale);
        clear(r->o + i * DV_PAD, DV_PAD);
    }
}

/* ---- keys --------------------------------------------------------------------------- */

/* Where the keys [first, end) and their values are, at most TILE_KEYS. */
static void
find_keys(const struct attention *a, const struct rows *r, struct keys *t, int first,
          int end)
{
    __global uchar *page = 0;
    for (int j = 0; j < TILE_KEYS; j++) {
        const int at = first + j;
        const uint row = page_row(r->head_kv, at);
        if (at < end && (j == 0 || at % PAGE_TOKENS == 0))
            page = page_of(&a->cache, &r->s, at);
        const bool seen = page && at < end && !is_padding(a, &r->s, at);
        __global uchar *any = seen ? page : a->cache.slab0;
        t->bias[j] = seen ? 0.0f : -INFINITY;
        t->key[j] = key_row(any, row);
        t->value[j] = value_row(any, row);
    }
}

/* Has the processor fetch the bytes at p into its second-level cache. */
static inline void
fetch(__global const uchar *p, int bytes)
{
#if defined(__has_builtin) && __has_builtin(__builtin_prefetch)
    for (int i = 0; i < bytes; i += 64)
        __builtin_prefetch((const void *)(p + i), 0, 2);
#endif
}

/* The same for keys [first, end) of the next tile, and their values. */
static void
fetch_keys(const struct keys *t, int first, int end)
{
    for (int j = first; j < end; j++) {
        fetch(t->key[j].values, ROW_BYTES(K_CACHE, D));
        fetch(t->key[j].scales, SCALE_BYTES(K_CACHE, D));
    }
}

static void
fetch_values(const struct keys *t, int first, int end)
{
    for (int j = first; j < end; j++) {
        fetch(t->value[j].values, ROW_BYTES(V_CACHE, DV));
        fetch(t->value[j].scales, SCALE_BYTES(V_CACHE, DV));
    }
}

static void
fill_tile(struct keys *t, int first)
{
    t->first = first;
    AT16(t->hidden)[0] = AT16(t->bias)[0];
    AT16(t->hidden)[1] = AT16(t->bias)[1];
    fill_keys(&t->k, t->key);
    fill_values(&t->v, t->value, t->bias);
}

/* ---- scores ------------------------------------------------------------------------- */

/* The scores of row i with 16 keys of the tile from key `at` on, of their dot products. */
static inline float16
finish_scores(const struct attention *a, const struct rows *r, const struct keys *t,
              int i, int at)
{
    const int16 lane = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const int token = row_token(r, i);
    const int first = t->first + at;
    const int low = clamp(first_seen(a, &r->s, token) - first, 0, 16);
    const int end = clamp(end_seen(&r->s, token) - first, 0, 16);
    float16 s = *AT16(r->p + i * TILE_KEYS + at);
    if (a->soft_cap != 0.0f)
        s = a->soft_cap * tanh(s / a->soft_cap);
    const float16 hidden = *AT16(t->hidden + at);
    if (a->mask_bits) {
        float added[16];
        for (int j = 0; j < 16; j++)
            added[j] = first + j < r->s.keys
                           ? mask_at(a, &r->s, row_head(r, i), token, first + j)
                           : 0.0f;
        s += vload16(0, added);
    }
    s = hidden == 0.0f ? s : hidden;
    return low == 0 && end == 16 ? s : lane >= low && lane < end ? s : (float16)-INFINITY;
}

/* e^x of what is not above 0. */
static inline float16
exp_of_negative(float16 x)
{
    const float16 rounder = 0x1.8p23f;    /* floats from it on are integers */
    x = larger((float16)-88.0296919f, x); /* 2^-127 becomes 0; what is no number stays */
    const float16 t = x * 1.44269504f + rounder;
    const float16 n = t - rounder;
    const float16 f = x * 1.44269504f - n;
    float16 y = 1.5403530e-4f;
    y = y * f + 1.3333558e-3f;
    y = y * f + 9.6181291e-3f;
    y = y * f + 5.5504109e-2f;
    y = y * f + 2.4022651e-1f;
    y = y * f + 6.9314718e-1f;
    y = y * f + 1.0f;
    return y * as_float16((as_int16(t) + 127) << 23);
}

static inline bool
any_above(float16 s, float m)
{
    const int16 is = s > m;
    const int8 a = is.lo | is.hi;
    const int4 b = a.lo | a.hi;
    return (b.x | b.y | b.z | b.w) != 0;
}

/* The online softmax's step of row i. Most tiles have no score above all that were before. */
static inline void
weigh_row(const struct attention *a, struct rows *r, const struct keys *t, int i)
{
    const float16 s0 = finish_scores(a, r, t, i, 0), s1 = finish_scores(a, r, t, i, 16);
    float16 *p = AT16(r->p + i * TILE_KEYS);
    float m = r->m[i], keep = 1.0f;
    if (any_above(larger(s0, s1), m)) {
        m = largest16(larger(s0, s1));
        keep = exp_of_negative((float16)(r->m[i] - m)).x;
        r->m[i] = m;
    } else if (m == -INFINITY)
        m = 0.0f; /* nothing is seen yet */
    p[0] = exp_of_negative(s0 - m);
    p[1] = exp_of_negative(s1 - m);
    r->l[i] = r->l[i] * keep + p[0] + p[1];
    r->keep[i] = keep;
}

/* ---- steps -------------------------------------------------------------------------- */

/* Scores and weights of n rows from row i on with the keys of the tile. The next tile is prefetched
 * meanwhile. */
__attribute__((always_inline)) static inline void
weigh_rows(const struct attention *a, struct rows *r, const struct keys *t, int i,
           const int n)
{
    dots(&r->q, &t->k, i, n, r->p + i * TILE_KEYS);
    for (int j = 0; j < n; j++) {
        if (i == 0)
            fetch_keys(t, j * TILE_KEYS / n, (j + 1) * TILE_KEYS / n);
        weigh_row(a, r, t, i + j);
    }
    PUT_WEIGHTS(&r->w, &t->v, i, n, r->p + i * TILE_KEYS);
}

__attribute__((always_inline)) static inline void
add_values(struct rows *r, const struct keys *t, int i, const int n)
{
    const int whole = DV_PAD / (16 * WIDTH) * (16 * WIDTH);
    float *o = r->o + i * DV_PAD;
    for (int d = 0; d < whole; d += 16 * WIDTH) {
        add_dims(&r->w, r->p + i * TILE_KEYS, &t->v, i, d, r->keep + i, o, n, WIDTH);
        if (i == 0)
            fetch_values(t, d * TILE_KEYS / DV_PAD,
                         (d + 16 * WIDTH) * TILE_KEYS / DV_PAD);
    }
    if (whole < DV_PAD)
        add_dims(&r->w, r->p + i * TILE_KEYS, &t->v, i, whole, r->keep + i, o, n, 1);
}

static void
weigh_tile(const struct attention *a, struct rows *r, const struct keys *t)
{
    int i = 0;
    for (; i + 8 <= r->n; i += 8)
        weigh_rows(a, r, t, i, 8);
    for (; i + 4 <= r->n; i += 4)
        weigh_rows(a, r, t, i, 4);
    for (; i + 2 <= r->n; i += 2)
        weigh_rows(a, r, t, i, 2);
    for (; i < r->n; i++)
        weigh_rows(a, r, t, i, 1);
}

static void
add_tile(struct rows *r, const struct keys *t)
{
    int i = 0;
    for (; i + 8 <= r->n; i += 8)
        add_values(r, t, i, 8);
    for (; i + 4 <= r->n; i += 4)
        add_values(r, t, i, 4);
    for (; i + 2 <= r->n; i += 2)
        add_values(r, t, i, 2);
    for (; i < r->n; i++)
        add_values(r, t, i, 1);
}

/* All rows of the tile against the keys [first, end). */
static void
attend_rows(const struct attention *a, struct rows *r, int first, int end)
{
    struct keys t;
    find_keys(a, r, &t, first, end);
    for (int j = first; j < end; j += TILE_KEYS) {
        fill_tile(&t, j);
        find_keys(a, r, &t, j + TILE_KEYS, end);
        weigh_tile(a, r, &t);
        add_tile(r, &t);
    }
}

/* The denominator of row i. Sums of integers and larger() lose what is not a number, the
 * denominator keeps it: then the whole row is not a number. */
static float
end_row(struct rows *r, int i)
{
    const float l = sum16(r->l[i]);
    if (l == l)
        return l;
    for (int d = 0; d < DV_PAD; d += 16)
        *AT16(r->o + i * DV_PAD + d) = l;
    r->m[i] = r->m[i] == -INFINITY ? 0.0f : r->m[i];
    return l;
}

/* The softmax of row i, complete, and rotated back. */
static void
finish_row(const struct attention *a, struct rows *r, int i, __global STORAGE(SRC) * out)
{
    const ulong to = row_index(r, i) * DV;
    const float l = end_row(r, i), norm = row_norm(a, row_head(r, i), r->m[i], l);
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
