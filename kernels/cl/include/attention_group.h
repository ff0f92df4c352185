/* SPDX-License-Identifier: Apache-2.0
 *
 * A tile of query rows against tiles of keys in a work-group, local memory only.
 *
 *   rows    ROWS of the T * GROUP_HEADS rows (token, head) that share one head of K and V
 *   keys    are processed TILE_KEYS at a time
 *   scores  TILE_DIMS dimensions of q and k at a time are in local memory, so that local memory
 *           does not grow with the head
 *   values  work-item `me` sums the dimensions me, me + ITEMS … of all rows, in registers; every
 *           element of V is read once, neighbouring elements by neighbouring work-items
 *
 * The online softmax of attention_row.h, a key tile a step.
 */
#include "attention.h"
#include "group_rotation.h"

#ifndef ROWS
#define ROWS 16
#endif
#define TILE_KEYS 32
#define TILE_DIMS 32
#define ROW_STEP  (ITEMS / TILE_KEYS)                /* rows that are scored at the same time */
/* scores of one key that a work-item computes */
#define ITEM_ROWS ((ROWS + ROW_STEP - 1) / ROW_STEP)
#define ITEM_DIMS ((DV + ITEMS - 1) / ITEMS)         /* dimensions of V that a work-item sums */

/* In local memory. */
struct tile {
    float q[ROWS][TILE_DIMS], k[TILE_KEYS][TILE_DIMS + 1];
    float sum[VALUE_ROTATION > 1 ? DV : 1]; /* a row's sum of values, to rotate it back */
    float p[ROWS][TILE_KEYS]; /* scores, then e^(score - m)                    */
    float m[ROWS], l[ROWS], keep[ROWS]; /* maximum, denominator, e^(old m - m)          */
    struct cached key[TILE_KEYS], value[TILE_KEYS]; /* values NULL: no row attends to the key */
};

/* The rows of a work-group. */
struct rows {
    struct sequence s;
    int head_kv, first, n; /* n: ROWS, or fewer (or 0) at the end of the sequence */
};

static inline int
row_token(const struct rows *r, int i)
{
    return (r->first + i) / GROUP_HEADS;
}

static inline int
row_head(const struct rows *r, int i)
{
    return r->head_kv * GROUP_HEADS + (r->first + i) % GROUP_HEADS;
}

/* Returns the index of row i among the rows (token, head) of q and of the result. */
static inline ulong
row_index(const struct rows *r, int i)
{
    return (ulong)(r->s.begin + row_token(r, i)) * HEADS_Q + row_head(r, i);
}

/* Returns tile `id` of the launch; tiles are numbered (head of K and V, tile). */
static inline struct rows
rows_of(const struct attention *a, uint id)
{
    const uint slots = tile_slots(a, GROUP_HEADS, ROWS);
    const struct place p = find_tile(a, id % slots, GROUP_HEADS, ROWS);
    const struct rows r = {p.s, (int)(id / slots), p.first, p.n};
    return r;
}

static void
begin_rows(__local struct tile *t, float o[ROWS][ITEM_DIMS])
{
    for (int i = get_local_id(0); i < ROWS; i += ITEMS) {
        t->m[i] = -INFINITY;
        t->l[i] = 0.0f;
    }
    for (int i = 0; i < ROWS; i++)
        for (int d = 0; d < ITEM_DIMS; d++)
            o[i][d] = 0.0f;
}

/* Copies dimensions [first, first + TILE_DIMS) of the tile's q and k to local memory, zeros behind
 * D. */
static void
stage_dims(const struct attention *a, const struct rows *r, __local struct tile *t,
           int first)
{
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = get_local_id(0); i < ROWS * TILE_DIMS; i += ITEMS) {
        const int row = i / TILE_DIMS, d = i % TILE_DIMS;
        const bool in = row < r->n && first + d < D;
        t->q[row][d] = in ? LOAD(SRC, a->q, row_index(r, row) * D + first + d) : 0.0f;
    }
    for (int i = get_local_id(0); i < TILE_KEYS * TILE_DIMS; i += ITEMS) {
        const int key = i / TILE_DIMS, d = i % TILE_DIMS;
        const struct cached k = t->key[key];
        const bool in = k.values && first + d < D;
        t->k[key][d] = in ? CACHED(K_CACHE, k, (uint)(first + d)) : 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* Returns the score of row i with key j, at position `at`, from their dot product; -infinity if the
 * row does not attend to the key. */
static float
finish_score(const struct attention *a, const struct rows *r, __local struct tile *t,
             int i, int j, int at, float dot)
{
    const int token = row_token(r, i);
    if (i >= r->n || !t->key[j].values || at < first_seen(a, &r->s, token) ||
        at >= end_seen(&r->s, token))
        return -INFINITY;
    float s = dot * a->scale;
    if (a->soft_cap != 0.0f)
        s = a->soft_cap * tanh(s / a->soft_cap);
    return s + mask_at(a, &r->s, row_head(r, i), token, at);
}

/* Sets the addresses of K and V of key j of the tile, at position `at`; NULL if it is padding, has
 * no page, or is not below `end`. */
static void
find_key(const struct attention *a, const struct rows *r, __local struct tile *t, int j,
         int at, int end)
{
    const bool seen = at < end && !is_padding(a, &r->s, at);
    __global uchar *page = seen ? page_of(&a->cache, &r->s, at) : 0;
    const uint row = page_row(r->head_kv, at);
    const struct cached none = {0, 0}, key = page ? key_row(page, row) : none,
                        value = page ? value_row(page, row) : none;
    t->key[j] = key;
    t->value[j] = value;
}

/* Writes the scores of the keys [first, end) to t->p. */
static void
score_tile(const struct attention *a, const struct rows *r, __local struct tile *t,
           int first, int end)
{
    const int me = get_local_id(0), key = me % TILE_KEYS, row = me / TILE_KEYS;
    float dot[ITEM_ROWS];
    for (int i = 0; i < ITEM_ROWS; i++)
        dot[i] = 0.0f;
    if (me < TILE_KEYS)
        find_key(a, r, t, me, first + me, end);
    for (int d = 0; d < D; d += TILE_DIMS) {
        stage_dims(a, r, t, d);
        for (int i = 0; i < TILE_DIMS; i++) {
            const float x = t->k[key][i];
            for (int j = 0; j < ITEM_ROWS; j++)
                dot[j] += x * t->q[min(row + j * ROW_STEP, ROWS - 1)][i];
        }
    }
    for (int j = 0; j < ITEM_ROWS; j++) {
        const int i = row + j * ROW_STEP;
        if (i < ROWS)
            t->p[i][key] = finish_score(a, r, t, i, key, first + key, dot[j]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* Does a step of the online softmax: t->p becomes e^(score - m). */
static void
weigh_tile(__local struct tile *t)
{
    const int me = get_local_id(0);
    for (int i = me; i < ROWS; i += ITEMS) {
        float m = t->m[i];
        for (int j = 0; j < TILE_KEYS; j++)
            m = fmax(m, t->p[i][j]);
        t->keep[i] = m == -INFINITY ? 1.0f : exp(t->m[i] - m);
        t->m[i] = m;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = me; i < ROWS * TILE_KEYS; i += ITEMS) {
        const int row = i / TILE_KEYS, key = i % TILE_KEYS;
        const float s = t->p[row][key];
        t->p[row][key] = s == -INFINITY ? 0.0f : exp(s - t->m[row]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = me; i < ROWS; i += ITEMS) {
        float sum = t->l[i] * t->keep[i];
        for (int j = 0; j < TILE_KEYS; j++)
            sum += t->p[i][j];
        t->l[i] = sum;
    }
}

static void
add_values(__local const struct tile *t, float o[ROWS][ITEM_DIMS])
{
    for (int i = 0; i < ROWS; i++)
        for (int d = 0; d < ITEM_DIMS; d++)
            o[i][d] *= t->keep[i];
    for (int j = 0; j < TILE_KEYS; j++) {
        const struct cached value = t->value[j];
        if (!value.values)
            continue;
        for (int d = 0; d < ITEM_DIMS; d++) {
            const int at = (int)get_local_id(0) + d * ITEMS;
            const float v = at < DV ? CACHED(V_CACHE, value, (uint)at) : 0.0f;
            for (int i = 0; i < ROWS; i++)
                o[i][d] += t->p[i][j] * v;
        }
    }
}

/* Writes the finished result of row i, rotated back. All work-items must call it for all ROWS rows,
 * because it has barriers; if not `wanted`, nothing is stored. */
static void
finish_row(const struct attention *a, const struct rows *r, __local struct tile *t, int i,
           const float o[ITEM_DIMS], bool wanted, __global STORAGE(SRC) *out)
{
    const float norm = row_norm(a, row_head(r, i), t->m[i], t->l[i]);
#if VALUE_ROTATION > 1
    for (int d = 0; d < ITEM_DIMS; d++)
        if ((int)get_local_id(0) + d * ITEMS < DV)
            t->sum[get_local_id(0) + d * ITEMS] = o[d];
    rotate_local(t->sum, DV, VALUE_ROTATION, VALUE_ROTATION);
#endif
    for (int d = 0; wanted && d < ITEM_DIMS; d++) {
        const int at = (int)get_local_id(0) + d * ITEMS;
        if (at < DV)
#if VALUE_ROTATION > 1
            STORE(SRC, out, row_index(r, i) * DV + at, t->sum[at] * norm);
#else
            STORE(SRC, out, row_index(r, i) * DV + at, o[d] * norm);
#endif
    }
}

/* Computes the rows' attention to those of the keys [first, end) that any of them attends to. Ends
 * with a barrier: t->m and t->l may be read. */
static void
attend_rows(const struct attention *a, const struct rows *r, __local struct tile *t,
            float o[ROWS][ITEM_DIMS], int first, int end)
{
    first = max(first, first_seen(a, &r->s, row_token(r, 0)));
    /* a tile without rows attends to no key, but must not return early: PoCL 6 breaks returns
     * before barriers */
    end = r->n ? min(end, end_seen(&r->s, row_token(r, r->n - 1))) : first;
    begin_rows(t, o);
    int j = first;
    do { /* without keys a turn changes nothing; at least one turn is needed (group.h) */
        barrier(CLK_LOCAL_MEM_FENCE);
        score_tile(a, r, t, j, end);
        weigh_tile(t);
        add_values(t, o);
        j += TILE_KEYS;
    } while (j < end);
    barrier(CLK_LOCAL_MEM_FENCE);
}
