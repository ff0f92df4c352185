/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of QUERY_ROWS query rows of one head of K and V to a range of keys, up to SG keys of a
 * page at a time, with the online softmax.
 *
 *   rows    (token, head of the group) in this order: neighbouring rows share keys
 *   scores  each lane has a key: no sums across lanes; q is read from memory, equal in all lanes
 *   values  the DV elements are distributed over the lanes; the weight of each key is broadcast
 *
 * Rows behind the last repeat it and are not written.
 */
#include "attention.h"
#include "lane_values.h"

#ifndef QUERY_ROWS
#define QUERY_ROWS 4
#endif

struct query_rows {
    struct sequence s;
    int head_kv, first, n; /* n: rows of (sequence, head_kv); 0: no work */
    float o[QUERY_ROWS][CHUNKS];
    float m[QUERY_ROWS], l[QUERY_ROWS];
};

static inline int
row_token(const struct query_rows *r, int i)
{
    return min(r->first + i, r->n - 1) / GROUP_HEADS;
}

static inline int
row_head(const struct query_rows *r, int i)
{
    return r->head_kv * GROUP_HEADS + min(r->first + i, r->n - 1) % GROUP_HEADS;
}

/* Returns the index of row i among the rows (token, head) of q and the result. */
static inline ulong
row_index(const struct query_rows *r, int i)
{
    return (ulong)(r->s.begin + row_token(r, i)) * HEADS_Q + row_head(r, i);
}

/* Begins block `id` of the rows; blocks of a head are contiguous. */
static inline void
begin_rows(const struct attention *a, struct query_rows *r, uint id)
{
    const uint slots = tile_slots(a, GROUP_HEADS, QUERY_ROWS);
    const struct place p = find_tile(a, id % slots, GROUP_HEADS, QUERY_ROWS);
    r->s = p.s;
    r->first = p.first;
    r->head_kv = (int)(id / slots);
    r->n = p.n > 0 && r->head_kv < HEADS_KV ? p.s.tokens * GROUP_HEADS : 0;
#pragma unroll
    for (int i = 0; i < QUERY_ROWS; i++) {
        r->m[i] = -INFINITY;
        r->l[i] = 0.0f;
#pragma unroll
        for (int c = 0; c < CHUNKS; c++)
            r->o[i][c] = 0.0f;
    }
}

/* Four neighbouring elements of q. */
#define LOAD4_f16(p, i) (float4)(halves(LOAD_WORDS(p, i).x), halves(LOAD_WORDS(p, i).y))
#define LOAD_WORDS(p, i) vload2(0, (__global const uint *)((p) + (i)))
#define LOAD4_f32(p, i) vload4(0, (p) + (i))
#define LOAD4(T, p, i)  PASTE(LOAD4_, T)(p, i)

/* Keys are read in parts of 16 bytes, if rows are whole parts. */
#define QUADS_f32   1
#define QUADS_f16   2
#define QUADS_i8    4
#define QUADS_u4    8
#define QUADS       PASTE(QUADS_, K_CACHE) /* groups of four elements in a part */
#define BLOCK_QUADS (QUADS < 4 ? QUADS : 4) /* groups of four elements with one scale */

/* Returns elements 4 i to 4 i + 3 of a part, not times their block's scale. */
static inline float4
key_quad(const uint *words, int i, struct block b)
{
#if IS_4_BITS(K_CACHE)
    const uint bits = words[i % 4] >> i / 4 * 4 & 0x0f0f0f0f;
    return levels4(convert_float4(as_uchar4(bits)), b.centre);
#elif HAS_SCALES(K_CACHE)
    return convert_float4(as_char4(words[i]));
#elif IS_HALF(K_CACHE)
    return (float4)(halves(words[2 * i]), halves(words[2 * i + 1]));
#else
    return as_float4((uint4)(words[0], words[1], words[2], words[3]));
#endif
}

/* s += q of each row times the part of this lane's key from element `first` on. */
static inline void
add_part(const struct attention *a, const ulong q_row[QUERY_ROWS], struct cached k, uint first,
         float s[QUERY_ROWS])
{
    uint words[4];
    put_words(vload4(first / (QUADS * 4), (__global const uint *)k.values), words);
    UNROLL_ON_GPUS
    for (int block = 0; block < QUADS / BLOCK_QUADS; block++) {
        const struct block b = BLOCK(K_CACHE, k, first + block * CACHE_BLOCK);
        float part[QUERY_ROWS];
#pragma unroll
        for (int i = 0; i < QUERY_ROWS; i++)
            part[i] = 0.0f;
        UNROLL_ON_GPUS
        for (int quad = 0; quad < BLOCK_QUADS; quad++) {
            const float4 key = key_quad(words, block * 4 + quad, b);
            const uint d = first + block * CACHE_BLOCK + quad * 4;
#pragma unroll
            for (int i = 0; i < QUERY_ROWS; i++)
                part[i] += dot(LOAD4(SRC, a->q, q_row[i] * D + d), key);
        }
#pragma unroll
        for (int i = 0; i < QUERY_ROWS; i++)
            s[i] += part[i] * b.scale;
    }
}

/* Sets s to q of each row times the key of this lane. */
static inline void
dots(const struct attention *a, const ulong q_row[QUERY_ROWS], struct cached k,
     float s[QUERY_ROWS])
{
#pragma unroll
    for (int i = 0; i < QUERY_ROWS; i++)
        s[i] = 0.0f;
#if D % (QUADS * 4) == 0
#pragma unroll 1
    for (uint first = 0; first < D; first += QUADS * 4)
        add_part(a, q_row, k, first, s);
#else
#pragma unroll 1
    for (uint d = 0; d < D; d++) {
        const float key = CACHED(K_CACHE, k, d);
#pragma unroll
        for (int i = 0; i < QUERY_ROWS; i++)
            s[i] += LOAD(SRC, a->q, q_row[i] * D + d) * key;
    }
#endif
}

/* Returns cap tanh(s / cap), in few instructions. */
static inline float
soft_capped(float s, float cap)
{
    return cap - 2.0f * cap / (exp(2.0f * s / cap) + 1.0f);
}

/* Turns the dot products s of this lane's key, at position j, into scores. */
static inline void
finish_scores(const struct attention *a, const struct query_rows *r, float s[QUERY_ROWS],
              int j, bool is_key)
{
#pragma unroll
    for (int i = 0; i < QUERY_ROWS; i++)
        s[i] *= a->scale;
    if (a->soft_cap != 0.0f) {
#pragma unroll
        for (int i = 0; i < QUERY_ROWS; i++)
            s[i] = soft_capped(s[i], a->soft_cap);
    }
#pragma unroll
    for (int i = 0; i < QUERY_ROWS; i++) {
        const int t = row_token(r, i);
        const bool seen =
            is_key && j >= first_seen(a, &r->s, t) && j < end_seen(&r->s, t);
        if (a->mask_bits)
            s[i] += seen ? mask_at(a, &r->s, row_head(r, i), t, j) : 0.0f;
        s[i] = seen ? s[i] : -INFINITY;
    }
}

/* Does a step of the online softmax for row i; returns the weight of this lane's key. */
static inline float
weigh(struct query_rows *r, int i, float s)
{
    const float m = fmax(r->m[i], sub_group_reduce_max(s));
    const float keep = m == -INFINITY ? 1.0f : exp(r->m[i] - m);
    const float p = m == -INFINITY ? 0.0f : exp(s - m);
    r->l[i] = r->l[i] * keep + sub_group_reduce_add(p);
    r->m[i] = m;
#pragma unroll
    for (int c = 0; c < CHUNKS; c++)
        r->o[i][c] *= keep;
    return p;
}

/* o += p v over the keys of the first n lanes, whose values are rows from `first` on. A value with
 * weight 0 may be memory that was never written; it counts as zeros. */
static inline void
add_values(struct query_rows *r, const float p[QUERY_ROWS], int n, struct cached first)
{
#pragma unroll 1
    for (int j = 0; j < n; j++) {
        const struct cached value = value_behind(first, (uint)j);
        float weight[QUERY_ROWS], all = 0.0f, v[CHUNKS];
#pragma unroll
        for (int i = 0; i < QUERY_ROWS; i++) {
            weight[i] = intel_sub_group_shuffle(p[i], j);
            all += weight[i];
        }
        read_value(value, all != 0.0f, v);
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
#pragma unroll
            for (int i = 0; i < QUERY_ROWS; i++)
                r->o[i][c] += weight[i] * v[c];
        }
    }
}

/* Writes the finished results of the rows, rotated back. */
static inline void
finish_rows(const struct attention *a, struct query_rows *r, __global STORAGE(SRC) * out)
{
#pragma unroll
    for (int i = 0; i < QUERY_ROWS; i++)
        rotate_value(r->o[i]);
#pragma unroll
    for (int i = 0; i < QUERY_ROWS; i++) {
        const ulong to = row_index(r, i) * DV;
        const float norm = row_norm(a, row_head(r, i), r->m[i], r->l[i]);
        if (r->first + i >= r->n)
            continue;
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            if (IS_VALUE(c))
                STORE(SRC, out, to + value_index(c), r->o[i][c] * norm);
        }
    }
}

/* Computes the rows' attention to n keys of a page, from position j and `row` of the page on.
 * !is_there: the page does not exist, `page` is any readable memory. */
static inline void
attend_page(const struct attention *a, struct query_rows *r,
            const ulong q_row[QUERY_ROWS], int j, int n, bool is_there,
            __global uchar *page, uint row)
{
    const int lane = (int)get_sub_group_local_id(), mine = min(lane, n - 1);
    const bool is_key = is_there && lane < n && !is_padding(a, &r->s, j + mine);
    float s[QUERY_ROWS];
    dots(a, q_row, key_row(page, row + mine), s);
    finish_scores(a, r, s, j + lane, is_key);
#pragma unroll
    for (int i = 0; i < QUERY_ROWS; i++)
        s[i] = weigh(r, i, s[i]);
    add_values(r, s, n, value_row(page, row));
}

/* Computes the rows' attention to the keys [first, end). */
static inline void
attend(const struct attention *a, struct query_rows *r, int first, int end)
{
    ulong q_row[QUERY_ROWS];
#pragma unroll
    for (int i = 0; i < QUERY_ROWS; i++)
        q_row[i] = row_index(r, i);
    first = max(first, first_seen(a, &r->s, row_token(r, 0)));
    end = min(end, end_seen(&r->s, row_token(r, QUERY_ROWS - 1)));
#pragma unroll 1
    while (first < end) {
        const int rest = PAGE_TOKENS - (int)((uint)first % PAGE_TOKENS);
        const int n = min(min(SG, rest), end - first);
        __global uchar *page = page_of(&a->cache, &r->s, first);
        attend_page(a, r, q_row, first, n, page != 0, page ? page : a->cache.slab0,
                    page ? page_row(r->head_kv, first) : 0);
        first += n;
    }
}
