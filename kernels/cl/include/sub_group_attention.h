/* SPDX-License-Identifier: Apache-2.0
 *
 * QUERY_ROWS query rows of one head of K and V against a range of keys, SG keys at a time, with
 * the online softmax.
 *
 *   rows    (token, head of the group) in this order: neighbours share keys
 *   scores  a key a lane: no sums across lanes; q comes from memory, the same for every lane
 *   values  DV across the lanes, the weight of each key broadcast
 *
 * Rows past the last repeat it and are not written. Positions are below 2^31.
 */
#include "attention.h"
#include "sub_group.h"

#ifndef QUERY_ROWS
#define QUERY_ROWS 4
#endif
#define CHUNKS ((DV + SG - 1) / SG) /* elements of V of a lane */

struct query_rows {
    int b, head_kv, first, n; /* n: rows of (b, head_kv) */
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

/* Where row i lies among the rows (b, t, h) of q and the result. */
static inline ulong
row_index(const struct attention *a, const struct query_rows *r, int i)
{
    return ((ulong)r->b * a->tokens + row_token(r, i)) * HEADS_Q + row_head(r, i);
}

/* Block `id` of the rows; blocks of a head are neighbours. */
static inline void
begin_rows(const struct attention *a, struct query_rows *r, uint id)
{
    r->n = a->tokens * GROUP_HEADS;
    const uint blocks = (uint)(r->n + QUERY_ROWS - 1) / QUERY_ROWS;
    r->first = (int)(id % blocks) * QUERY_ROWS;
    r->head_kv = (int)(id / blocks % HEADS_KV);
    r->b = (int)(id / blocks / HEADS_KV);
#pragma unroll
    for (int i = 0; i < QUERY_ROWS; i++) {
        r->m[i] = -INFINITY;
        r->l[i] = 0.0f;
#pragma unroll
        for (int c = 0; c < CHUNKS; c++)
            r->o[i][c] = 0.0f;
    }
}

#if D % 4 == 0
#define LOAD4_f16(p, i)  (float4)(halves(LOAD_WORDS(p, i).x), halves(LOAD_WORDS(p, i).y))
#define LOAD_WORDS(p, i) vload2(0, (__global const uint *)((p) + (i)))
#define LOAD4_f32(p, i)  vload4(0, (p) + (i))
#define LOAD4_i8(p, i)   convert_float4(vload4(0, (p) + (i)))
#define LOAD4(T, p, i)   PASTE(LOAD4_, T)(p, i)
#define AT_ONCE          4
#else
#define AT_ONCE 1
#endif

/* q of each row times the key of this lane. */
static inline void
dots(const struct attention *a, const ulong q_row[QUERY_ROWS], long k_row,
     float s[QUERY_ROWS])
{
    const ulong k = (ulong)max(k_row, 0L) * D;
#pragma unroll
    for (int i = 0; i < QUERY_ROWS; i++)
        s[i] = 0.0f;
#pragma unroll 1
    for (uint d = 0; d < D; d += AT_ONCE) {
#if AT_ONCE == 4
        const float4 key = LOAD4(CACHE, a->k_cache, k + d);
#pragma unroll
        for (int i = 0; i < QUERY_ROWS; i++)
            s[i] += dot(LOAD4(SRC, a->q, q_row[i] * D + d), key);
#else
        const float key = LOAD(CACHE, a->k_cache, k + d);
#pragma unroll
        for (int i = 0; i < QUERY_ROWS; i++)
            s[i] += LOAD(SRC, a->q, q_row[i] * D + d) * key;
#endif
    }
}

/* cap tanh(s / cap), of few instructions. */
static inline float
soft_capped(float s, float cap)
{
    return cap - 2.0f * cap / (exp(2.0f * s / cap) + 1.0f);
}

/* The scores s of the key at position j, in its lane; k_row < 0: no key. */
static inline void
finish_scores(const struct attention *a, const struct query_rows *r, float s[QUERY_ROWS],
              int j, long k_row)
{
    const float scale =
        CACHE_SCALED && k_row >= 0 ? a->scale * a->k_scale[k_row] : a->scale;
#pragma unroll
    for (int i = 0; i < QUERY_ROWS; i++)
        s[i] *= scale;
    if (a->soft_cap != 0.0f) {
#pragma unroll
        for (int i = 0; i < QUERY_ROWS; i++)
            s[i] = soft_capped(s[i], a->soft_cap);
    }
#pragma unroll
    for (int i = 0; i < QUERY_ROWS; i++) {
        const int t = row_token(r, i);
        const bool seen =
            k_row >= 0 && j >= (int)first_seen(a, t) && j < (int)end_seen(a, t);
        if (a->mask_bits)
            s[i] += seen ? mask_at(a, r->b, row_head(r, i), t, j) : 0.0f;
        s[i] = seen ? s[i] : -INFINITY;
    }
}

/* The online softmax's step of row i: gives the weight of the key of this lane. */
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

/* o += p v over the keys of the lanes; row < 0: no key. */
static inline void
add_values(const struct attention *a, struct query_rows *r, const float p[QUERY_ROWS],
           long row)
{
    const float scale = CACHE_SCALED && row >= 0 ? a->v_scale[row] : 1.0f;
#pragma unroll 1
    for (int j = 0; j < SG; j++) {
        const uint low = intel_sub_group_shuffle((uint)row, j);
        const int high = intel_sub_group_shuffle((int)(row >> 32), j);
        const ulong v_row = high < 0 ? 0 : (ulong)high << 32 | low;
        float weight[QUERY_ROWS];
#pragma unroll
        for (int i = 0; i < QUERY_ROWS; i++)
            weight[i] = intel_sub_group_shuffle(p[i] * scale, j);
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            const uint d = c * SG + get_sub_group_local_id();
            const bool in = high >= 0 && d < DV;
            const float v =
                in ? LOAD(CACHE, a->v_cache, v_row * DV + min(d, DV - 1u)) : 0.0f;
#pragma unroll
            for (int i = 0; i < QUERY_ROWS; i++)
                r->o[i][c] += weight[i] * v;
        }
    }
}

/* The softmax of the rows, complete. */
static inline void
finish_rows(const struct attention *a, const struct query_rows *r,
            __global STORAGE(SRC) * out)
{
#pragma unroll
    for (int i = 0; i < QUERY_ROWS; i++) {
        const ulong to = row_index(a, r, i) * DV;
        const float norm = row_norm(a, row_head(r, i), r->m[i], r->l[i]);
        if (r->first + i >= r->n)
            continue;
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            const uint d = c * SG + get_sub_group_local_id();
            if (d < DV)
                STORE(SRC, out, to + d, r->o[i][c] * norm);
        }
    }
}

/* cache_row() without division of 64 bits, which GPUs emulate; -1 for padding, too. */
static inline long
key_row(const struct attention *a, const struct query_rows *r, int j)
{
    const int page = a->table[(ulong)r->b * a->max_pages + (uint)j / PAGE_TOKENS];
    if (page < 0 || is_padding(a, r->b, j))
        return -1;
    return ((long)page * HEADS_KV + r->head_kv) * PAGE_TOKENS + (uint)j % PAGE_TOKENS;
}

/* The rows against the keys [first, end). */
static inline void
attend(const struct attention *a, struct query_rows *r, int first, int end)
{
    ulong q_row[QUERY_ROWS];
#pragma unroll
    for (int i = 0; i < QUERY_ROWS; i++)
        q_row[i] = row_index(a, r, i);
    first = max(first, (int)first_seen(a, row_token(r, 0)));
    end = min(end, (int)end_seen(a, row_token(r, QUERY_ROWS - 1)));
#pragma unroll 1
    for (; first < end; first += SG) {
        const int j = first + (int)get_sub_group_local_id();
        const long row = j < end ? key_row(a, r, j) : -1;
        float s[QUERY_ROWS];
        dots(a, q_row, row, s);
        finish_scores(a, r, s, j, row);
#pragma unroll
        for (int i = 0; i < QUERY_ROWS; i++)
            s[i] = weigh(r, i, s[i]);
        add_values(a, r, s, row);
    }
}
