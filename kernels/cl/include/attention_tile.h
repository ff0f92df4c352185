/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of a tile of query rows to tiles of keys, with explicit vectors.
 *
 *   rows    TILE_TOKENS tokens times the GROUP_HEADS heads that share one head of K and V: a
 *           page is read once for all of them
 *   keys    TILE_KEYS at a time, multiplied by attention_shorts.h or attention_floats.h; a vector
 *           has a row's scores with 16 keys. Meanwhile the next tile is prefetched.
 *   scores  of up to MANY_ROWS rows at once: as many sums as registers hold
 *   values  sums of up to MANY_ROWS rows by WIDTH vectors of V at once
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

/* MANY_ROWS rows by WIDTH vectors are summed in registers. */
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

/* Converts 16 halves to floats; wide_halves loads them from any address. */
static inline float16
floats_of(ushort16 x)
{
    typedef short halves __attribute__((vector_size(32)));
    typedef float floats __attribute__((vector_size(64)));
    const floats none = __builtin_astype((float16)0.0f, floats);
    return __builtin_astype(__builtin_ia32_vcvtph2ps512_mask(__builtin_astype(x, halves),
                                                             none, (ushort)0xffff, 4),
                            float16);
}

static inline float16
wide_halves(__global const uchar *p)
{
    return floats_of(((__global const loose_ushort16 *)p)->v);
}
#else
#define WIDE_HALVES 0
#define WIDE_SHORTS 0
#endif

/* Whether tiles of keys and values are shorts or halves: attention_shorts.h, attention_floats.h. */
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

/* Alignment to a cache line, and an aligned array of floats as vectors. */
#define LINES   __attribute__((aligned(64)))
#define AT16(p) ((float16 *)(p))

/* Returns the larger of a and b; b if either is NaN. */
static inline float16
larger(float16 a, float16 b)
{
    return a > b ? a : b;
}

/* Returns the largest element of each of 8 vectors. */
static inline float8
largest_of_each(const float16 v[8])
{
    float16 w[2];
#pragma unroll
    for (int i = 0; i < 2; i++)
        w[i] = FOLD_PAIRS(larger, FOLD_WORDS(larger, v[4 * i], v[4 * i + 1]),
                          FOLD_WORDS(larger, v[4 * i + 2], v[4 * i + 3]));
    const float16 a = FOLD_FOURS(larger, w[0], w[1]);
    return FOLD_FOURS(larger, a, a).lo;
}

static inline float
largest16(float16 v)
{
    const float8 a = v.lo > v.hi ? v.lo : v.hi;
    const float4 b = a.lo > a.hi ? a.lo : a.hi;
    const float2 c = b.lo > b.hi ? b.lo : b.hi;
    return c.lo > c.hi ? c.lo : c.hi;
}

/* Prefetches into the second-level cache the line of the next tile's row that begins at byte `at`,
 * if one does. Called once for each line that is read of this tile, because a burst of prefetches
 * would stall. */
static inline void
fetch_line(__global const uchar *row, uint at)
{
#if defined(__has_builtin) && __has_builtin(__builtin_prefetch)
    if (at % 64 == 0)
        __builtin_prefetch((const void *)(row + at), 0, 2);
#endif
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
    float16 l[TILE_ROWS];                 /* the denominator is the sum of the lanes */
    /* keep: e^(old m - m); read MANY_ROWS at a time */
    float m[TILE_ROWS + MANY_ROWS], keep[TILE_ROWS + MANY_ROWS];
};

/* The addresses of the rows of K and V of a tile. */
struct tile_rows {
    struct cached key[TILE_KEYS], value[TILE_KEYS];
    float bias[TILE_KEYS] LINES; /* 0, or -infinity: no row attends to the key */
};

struct keys {
    int first;
    bool is_plain; /* all rows attend to all keys, and scores are the dot products */
    const struct tile_rows *now, *next; /* tile */
    struct tile_rows rows[2];
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

/* Returns the index of row i among the rows (token, head) of q and the result. */
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

/* Begins `tokens` tokens of sequence r->s, from first_token on. */
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

/* Finds the keys [first, end), at most TILE_KEYS, and their values. Rows of a page are
 * contiguous. */
static void
find_keys(const struct attention *a, const struct rows *r, struct tile_rows *t, int first,
          int end)
{
    for (int j = 0; j < TILE_KEYS;) {
        const int at = first + j, row = page_row(r->head_kv, at);
        __global uchar *page = at < end ? page_of(&a->cache, &r->s, at) : 0;
        const int n = min(TILE_KEYS - j, PAGE_TOKENS - at % PAGE_TOKENS);
        struct cached key = key_row(page ? page : a->cache.slab0, row);
        struct cached value = value_row(page ? page : a->cache.slab0, row);
        const int seen = page ? min(n, end - at) : 0;
        for (int i = 0; i < n; i++) {
            t->key[j + i] = key;
            t->value[j + i] = value;
            t->bias[j + i] = i < seen ? 0.0f : -INFINITY;
            key = key_behind(key, 1);
            value = value_behind(value, 1);
        }
        j += n;
    }
    for (int j = 0; a->key_mask_bytes && j < TILE_KEYS && first + j < end; j++)
        if (is_padding(a, &r->s, first + j))
            t->bias[j] = -INFINITY;
}

/* ---- scores ------------------------------------------------------------------------- */

/* Returns the scores of row i with 16 keys of the tile from key `at` on, from the dot products. */
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
    const float16 hidden = *AT16(t->now->bias + at);
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

/* Returns e^x for x not above 0. */
static inline float16
exp_of_negative(float16 x)
{
    const float16 rounder = 0x1.8p23f;    /* floats from it on are integers */
    x = larger((float16)-88.0296919f, x); /* the result is then 0; NaN stays NaN */
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
any8(int8 v)
{
    const int4 a = v.lo | v.hi;
    return (a.x | a.y | a.z | a.w) != 0;
}

/* Does a step of the online softmax for rows i ... i + n - 1 from their scores at p. In most tiles
 * no score is above the row's maximum so far. */
__attribute__((always_inline)) static inline void
weigh_scores(const struct attention *a, struct rows *r, const struct keys *t, int i,
             const int n)
{
    float16 s[MANY_ROWS][2], most[MANY_ROWS];
    float from[MANY_ROWS];
#pragma unroll
    for (int j = 0; j < MANY_ROWS; j++) {
        most[j] = -INFINITY;
        if (j >= n)
            continue;
        const float16 *p = AT16(r->p + (i + j) * TILE_KEYS);
        s[j][0] = t->is_plain ? p[0] : finish_scores(a, r, t, i + j, 0);
        s[j][1] = t->is_plain ? p[1] : finish_scores(a, r, t, i + j, 16);
        most[j] = larger(s[j][0], s[j][1]);
    }
    const float8 before = vload8(0, r->m + i), top = largest_of_each(most);
    float8 m = before, keep = 1.0f;
    if (any8(top > before)) {
        m = top > before ? top : before;
        const float16 less = exp_of_negative((float16)(before - m, before - m));
        keep = m > before ? less.lo : keep;
        vstore8(m, 0, r->m + i);
    }
    vstore8(keep, 0, r->keep + i);
    vstore8(m == -INFINITY ? (float8)0.0f : m, 0, from); /* if no key was attended to yet */
#pragma unroll
    for (int j = 0; j < n; j++) {
        float16 *p = AT16(r->p + (i + j) * TILE_KEYS);
        p[0] = exp_of_negative(s[j][0] - from[j]);
        p[1] = exp_of_negative(s[j][1] - from[j]);
        r->l[i + j] = r->l[i + j] * r->keep[i + j] + p[0] + p[1];
    }
}

/* ---- steps -------------------------------------------------------------------------- */

/* Computes scores and weights of n rows from row i on with the keys of the tile. */
__attribute__((always_inline)) static inline void
weigh_rows(const struct attention *a, struct rows *r, struct keys *t, int i, const int n)
{
    dots(&r->q, &t->k, i, n, r->p + i * TILE_KEYS);
    weigh_scores(a, r, t, i, n);
    PUT_WEIGHTS(&r->w, &t->v, i, n, r->p + i * TILE_KEYS);
}

__attribute__((always_inline)) static inline void
add_values(struct rows *r, struct keys *t, int i, const int n)
{
    const int whole = DV_PAD / (16 * WIDTH) * (16 * WIDTH);
    float *o = r->o + i * DV_PAD;
    for (int d = 0; d < whole; d += 16 * WIDTH)
        add_dims(&r->w, r->p + i * TILE_KEYS, &t->v, i, d, r->keep + i, o, n, WIDTH);
    if (whole < DV_PAD)
        add_dims(&r->w, r->p + i * TILE_KEYS, &t->v, i, whole, r->keep + i, o, n, 1);
}

__attribute__((always_inline)) static inline void
attend_some(const struct attention *a, struct rows *r, struct keys *t, int i, const int n)
{
    weigh_rows(a, r, t, i, n);
    add_values(r, t, i, n);
}

/* Adds the keys of the tile to all rows. */
static void
attend_tile(const struct attention *a, struct rows *r, struct keys *t)
{
    int i = 0;
    for (; i + 8 <= r->n; i += 8)
        attend_some(a, r, t, i, 8);
    for (; i + 4 <= r->n; i += 4)
        attend_some(a, r, t, i, 4);
    for (; i + 2 <= r->n; i += 2)
        attend_some(a, r, t, i, 2);
    for (; i < r->n; i++)
        attend_some(a, r, t, i, 1);
}

/* Returns whether the tile's scores are the dot products: no mask, cap or hidden key. */
static bool
is_plain(const struct attention *a, const struct rows *r, const struct keys *t)
{
    const int16 hidden =
        as_int16(AT16(t->now->bias)[0]) | as_int16(AT16(t->now->bias)[1]);
    const int8 b = hidden.lo | hidden.hi;
    const int4 c = b.lo | b.hi;
    return a->soft_cap == 0.0f && !a->mask_bits && (c.x | c.y | c.z | c.w) == 0 &&
           first_seen(a, &r->s, row_token(r, r->n - 1)) <= t->first &&
           end_seen(&r->s, r->first_token) >= t->first + TILE_KEYS;
}

/* Computes the attention of all rows to the keys [first, end). */
static void
attend_rows(const struct attention *a, struct rows *r, int first, int end)
{
    struct keys t;
    /* one pass computes all rows: converted keys need not be kept */
    const bool at_once = r->n <= MANY_ROWS && (r->n & (r->n - 1)) == 0;
    find_keys(a, r, t.rows, first, end);
    for (int j = first, now = 0; j < end; j += TILE_KEYS, now = !now) {
        t.first = j;
        t.now = t.rows + now;
        t.next = t.rows + !now;
        t.is_plain = is_plain(a, r, &t);
        find_keys(a, r, t.rows + !now, j + TILE_KEYS, end);
        fill_keys(&t.k, t.now->key, t.next->key, !at_once);
        fill_values(&t.v, t.now->value, t.next->value, t.now->bias, !at_once);
        attend_tile(a, r, &t);
    }
}

/* Returns the denominator of row i. Sums of integers and larger() lose NaN, but the denominator
 * keeps it: then the whole row becomes NaN. */
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

/* Writes the finished result of row i, rotated back. */
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

/* The first key that any row of the tile attends to; tile_end: one behind the last. */
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
