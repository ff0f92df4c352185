/* SPDX-License-Identifier: Apache-2.0
 *
 *     out[r,h,:]    = softmax_j(scale q.k_j + mask) v_j           (sinks in the denominator)
 *
 * On matrix engines (matrix_mad.h). A sub-group makes SG rows (token, head) that share one head
 * of K and V, a row a lane, against KEYS keys at a time:
 *
 *     s [KEYS][SG]    = k [KEYS][D] q^T [D][SG]              a is k, b is q^T
 *     p [KEYS][SG]    = e^(s - m)                            m and l are a lane's own
 *     o [VALUES][SG] += v^T [VALUES][KEYS] p [KEYS][SG]      a is v^T, b is p
 *
 * What one product leaves in a lane the next one takes from there: nothing is exchanged, nothing
 * is staged. Heads of more than 128 values are made in parts by sub-groups that each make the
 * scores anew.
 *
 * The host sees to it that D is whole reads of 64, that DV and PAGE_TOKENS are multiples of 16, so
 * that the keys of a tile are neighbours in a page, that SRC is f16 and no cache f32: the engines
 * take halves, and what is cached in fewer bits becomes halves as it is read. Not done: other D.
 */
#include "attention.h"
#include "matrix_mad.h"
#include "rotation.h"

#define KEYS         16
#define BLOCKS       ((DV + 15) / 16) /* of 16 values */
#define VALUE_PARTS  ((DV + 127) / 128)
/* of a part: what is rotated together stays together */
#define VALUE_BLOCKS                                                                     \
    (((BLOCKS + VALUE_PARTS - 1) / VALUE_PARTS + ROTATED - 1) / ROTATED * ROTATED)
#define ROTATED ((VALUE_ROTATION + 15) / 16) /* blocks that are rotated together */
#define STEPS        ((D + 63) / 64 * 4)
#define LANE_KEYS    (KEYS / SG) /* keys whose values are in a lane: neighbours */

/* Steps of a row of K that are read at once, as registers allow. */
#if !IS_HALF(K_CACHE)
#define READ 1
#elif SG == 8
#define READ 2
#else
#define READ 4
#endif

#if SG == 8
#define AS_MATRIX(x) as_int8(x)
#else
#define AS_MATRIX(x) as_short8(x)
#endif

/* The rows of a sub-group. */
struct query {
    struct sequence s;
    int head_kv, head, token, first_value;
    bool repeats; /* a lane behind the last row repeats that row, and writes nothing    */
    ulong row;    /* of this lane, among the rows (row, head) of q and the result       */
    int low, end; /* positions that this lane sees                       */
    int whole_low, whole_end; /* that all of them see                                */
    int tile_low, tile_end;   /* that any of them sees                               */
};

/* The rows of a unit, which makes a part of the values of a tile; false: it has none. */
static inline bool
find_rows(const struct attention *a, uint unit, struct query *r)
{
    const uint slots = tile_slots(a, GROUP_HEADS, SG);
    const struct place p = find_tile(a, unit / VALUE_PARTS % slots, GROUP_HEADS, SG);
    const int first = p.first, last = first + p.n - 1;
    const int mine = min(first + (int)get_sub_group_local_id(), last);
    r->s = p.s;
    r->first_value = (int)(unit % VALUE_PARTS) * VALUE_BLOCKS * 16;
    r->repeats = first + (int)get_sub_group_local_id() > last;
    r->head_kv = (int)(unit / VALUE_PARTS / slots);
    r->token = mine / GROUP_HEADS;
    r->head = r->head_kv * GROUP_HEADS + mine % GROUP_HEADS;
    r->row = (ulong)(r->s.begin + r->token) * HEADS_Q + r->head;
    r->low = first_seen(a, &r->s, r->token);
    r->end = end_seen(&r->s, r->token);
    r->tile_low = first_seen(a, &r->s, first / GROUP_HEADS);
    r->whole_low = first_seen(a, &r->s, last / GROUP_HEADS);
    r->whole_end = end_seen(&r->s, first / GROUP_HEADS);
    r->tile_end = end_seen(&r->s, last / GROUP_HEADS);
    return p.n > 0 && r->head_kv < HEADS_KV;
}

/* Limits what the rows see to the keys [first, end). */
static inline void
limit_keys(struct query *r, int first, int end)
{
    r->low = max(r->low, first);
    r->tile_low = max(r->tile_low, first);
    r->whole_low = max(r->whole_low, first);
    r->end = min(r->end, end);
    r->tile_end = min(r->tile_end, end);
    r->whole_end = min(r->whole_end, end);
}

/* ---- scores -------------------------------------------------------------------------- */

/* Slot i of a row of K that is not cached as halves. */
static inline slots
make_slot(struct cached k, uint i)
{
#if SG == 8
    return two_halves(CACHED(K_CACHE, k, 2 * i), CACHED(K_CACHE, k, 2 * i + 1));
#else
    return (slots)two_halves(CACHED(K_CACHE, k, i), 0.0f);
#endif
}

/* This lane's slots of READ steps of the n-th row behind one of K, from `step` on. */
static inline void
load_key(struct cached k, uint n, uint step, slots to[READ])
{
#if IS_HALF(K_CACHE)
    __global const uchar *at = k.values + (n * ROW_BYTES(K_CACHE, D) + step * 32);
#else
    k = key_behind(k, n);
#endif
#if !IS_HALF(K_CACHE)
#pragma unroll
    for (uint i = 0; i < READ; i++)
        to[i] = make_slot(k, (step + i) * SG + get_sub_group_local_id());
#elif MATRIX_ENGINE && SG == 8
    vstore2(intel_sub_group_block_read2((__global const uint *)at), 0, to);
#elif MATRIX_ENGINE
    vstore4(intel_sub_group_block_read_us4((__global const ushort *)at), 0, to);
#else
#pragma unroll
    for (uint i = 0; i < READ; i++)
        to[i] = ((__global const slots *)at)[i * SG + get_sub_group_local_id()];
#endif
}

/* Step `step` of this lane's row of q. */
static inline int8
load_query(const struct attention *a, const struct query *r, uint step)
{
    return as_int8(vload8(0, (__global const uint *)(a->q + r->row * D + step * 16)));
}

/* The products of the lanes' rows with KEYS neighbouring rows of K. */
static inline void
dots(const struct attention *a, const struct query *r, struct cached k,
     float8 s[KEYS / 8])
{
#pragma unroll 1
    for (uint step = 0; step < STEPS; step += READ) {
        int8 q[READ];
#pragma unroll
        for (uint j = 0; j < READ; j++)
            q[j] = load_query(a, r, step + j);
        UNROLL_PRODUCTS
        for (uint i = 0; i < KEYS; i += 8) {
            slots key[8][READ], column[8];
#pragma unroll
            for (uint n = 0; n < 8; n++)
                load_key(k, i + n, step, key[n]);
            UNROLL_PRODUCTS
            for (uint j = 0; j < READ; j++) {
#pragma unroll
                for (uint n = 0; n < 8; n++)
                    column[n] = key[n][j];
                s[i / 8] = matrix_mad(AS_MATRIX(vload8(0, column)), q[j], s[i / 8]);
            }
        }
    }
}

/* The scores of 8 keys from position j on, from their products s. */
static inline float8
finish_scores(const struct attention *a, const struct query *r, float8 s, int j)
{
    s *= a->scale;
    if (a->soft_cap != 0.0f) /* cap tanh(s / cap) */
        s = a->soft_cap -
            2.0f * a->soft_cap / (native_exp(2.0f * s / a->soft_cap) + 1.0f);
    if (a->mask_bits) {
        float added[8];
#pragma unroll
        for (int i = 0; i < 8; i++)
            added[i] = mask_at(a, &r->s, r->head, r->token, min(j + i, r->s.keys - 1));
        s += vload8(0, added);
    }
    if (j < r->whole_low || j + 8 > r->whole_end) {
        const int8 at = j + (int8)(0, 1, 2, 3, 4, 5, 6, 7);
        s = at >= r->low && at < r->end ? s : -INFINITY;
    }
    return s;
}

/* Hides those of the KEYS keys from position j on that are padding. Every lane looks at all of
 * them, because exchanges between lanes would stand in a branch (sub_group.h). */
static inline void
hide_padding(const struct attention *a, const struct query *r, int j, float s[KEYS])
{
    uint hidden = 0;
#pragma unroll 1
    for (int i = 0; i < KEYS; i++)
        hidden |= (uint)is_padding(a, &r->s, min(j + i, r->s.keys - 1)) << i;
#pragma unroll
    for (int i = 0; i < KEYS; i++)
        s[i] = hidden >> i & 1 ? -INFINITY : s[i];
}

/* ---- values -------------------------------------------------------------------------- */

/* 16 values of the n-th row behind one of V, from `first` on, as halves. */
static inline uint8
load_values(struct cached v, uint n, uint first)
{
#if IS_HALF(V_CACHE)
    return vload8(0, (__global const uint *)(v.values + first * 2 + n * DV * 2));
#else
    v = value_behind(v, n);
    float x[16];
    uint words[8];
    vstore16(CACHED16(V_CACHE, v, first), 0, x);
#pragma unroll
    for (int i = 0; i < 8; i++)
        words[i] = two_halves(x[2 * i], x[2 * i + 1]);
    return vload8(0, words);
#endif
}

/* o += v p for the values from `first` on, 16 of them, of this lane's rows of V: the even ones,
 * the odd ones. */
static inline void
add_values(struct cached value, uint first, const int there[LANE_KEYS], int8 p, float8 *o)
{
    uint8 v[LANE_KEYS];
#pragma unroll
    for (uint i = 0; i < LANE_KEYS; i++) {
        v[i] = 0;
        if (there[i])
            v[i] = load_values(value, i, first);
    }
#if SG == 8
    const uint8 even = (v[0] & 0xffff) | v[1] << 16,
                odd = v[0] >> 16 | (v[1] & 0xffff0000);
#else
    const ushort8 even = convert_ushort8(v[0]), odd = convert_ushort8(v[0] >> 16);
#endif
    o[0] = matrix_mad(AS_MATRIX(even), p, o[0]);
    o[1] = matrix_mad(AS_MATRIX(odd), p, o[1]);
}

/* ---- rows ---------------------------------------------------------------------------- */

struct sums {
    float m, l;
    float8 o[VALUE_BLOCKS][2]; /* of 16 values the even ones, the odd ones */
};

static inline void
clear_sums(struct sums *sums)
{
    sums->m = -INFINITY;
    sums->l = 0.0f;
#pragma unroll
    for (uint i = 0; i < VALUE_BLOCKS; i++)
        sums->o[i][0] = sums->o[i][1] = 0.0f;
}

/* The online softmax's step: s becomes halves of e^(s - m), two keys a word. */
static inline int8
weigh(struct sums *sums, float s[KEYS])
{
    uint p[KEYS / 2];
    float most = sums->m, sum = 0.0f;
#pragma unroll
    for (int i = 0; i < KEYS; i++)
        most = fmax(most, s[i]);
    const float base =
        most == -INFINITY ? 0.0f : most; /* nothing is seen: all are zero */
    const float keep = native_exp(sums->m - base);
#pragma unroll
    for (int i = 0; i < KEYS; i++) {
        s[i] = native_exp(s[i] - base);
        sum += s[i];
    }
#pragma unroll
    for (int i = 0; i < KEYS / 2; i++)
        p[i] = two_halves(s[2 * i], s[2 * i + 1]);
    sums->m = most;
    sums->l = sums->l * keep + sum;
    if (sub_group_reduce_min(keep) != 1.0f) { /* rarely, after the first keys */
#pragma unroll
        for (uint i = 0; i < VALUE_BLOCKS; i++) {
            sums->o[i][0] *= keep;
            sums->o[i][1] *= keep;
        }
    }
    return as_int8(vload8(0, p));
}

/* The lanes' rows against the keys from position j on, which a page has. */
static inline void
attend_tile(const struct attention *a, const struct query *r, int j, __global uchar *page,
            struct sums *sums)
{
    const uint row = page_row(r->head_kv, j);
    const int mine = (int)get_sub_group_local_id() * LANE_KEYS;
    int there[LANE_KEYS];
    float8 products[KEYS / 8] = {0.0f, 0.0f};
    float s[KEYS];
#pragma unroll
    for (int i = 0; i < LANE_KEYS; i++)
        there[i] = j + mine + i < r->s.keys && !is_padding(a, &r->s, j + mine + i);
    dots(a, r, key_row(page, row), products);
    vstore8(finish_scores(a, r, products[0], j), 0, s);
    vstore8(finish_scores(a, r, products[1], j + 8), 1, s);
    if (a->key_mask_bytes)
        hide_padding(a, r, j, s);
    const int8 p = weigh(sums, s);
    UNROLL_PRODUCTS
    for (uint i = 0; i < VALUE_BLOCKS; i++)
        add_values(value_row(page, row + mine), min(r->first_value + i * 16, DV - 16u),
                   there, p, sums->o[i]);
}

static inline void
attend(const struct attention *a, const struct query *r, struct sums *sums)
{
#pragma unroll 1
    for (int j = r->tile_low / KEYS * KEYS; j < r->tile_end; j += KEYS) {
        __global uchar *page = page_of(&a->cache, &r->s, j);
        if (page)
            attend_tile(a, r, j, page, sums);
    }
}

/* rotation.h of the lanes' rows, which have their even and odd values apart: the stride 1 is
 * between those two, 2, 4 and 8 are in a vector, the others from block to block. */
static inline void
rotate_rows(struct sums *sums)
{
#if VALUE_ROTATION > 1
#pragma unroll
    for (uint i = 0; i < VALUE_BLOCKS; i++) {
        const float8 even = sums->o[i][0], odd = sums->o[i][1];
        sums->o[i][0] = rotate_8(even + odd);
        sums->o[i][1] = rotate_8(even - odd);
    }
#pragma unroll
    for (uint step = 1; step < ROTATED; step *= 2)
#pragma unroll
        for (uint i = 0; i < VALUE_BLOCKS * 2; i++)
            if (!(i / 2 & step)) {
                const float8 low = sums->o[i / 2][i % 2],
                             high = sums->o[i / 2 + step][i % 2];
                sums->o[i / 2][i % 2] = low + high;
                sums->o[i / 2 + step][i % 2] = low - high;
            }
#pragma unroll
    for (uint i = 0; i < VALUE_BLOCKS; i++) {
        sums->o[i][0] *= ROOT_OF(VALUE_ROTATION);
        sums->o[i][1] *= ROOT_OF(VALUE_ROTATION);
    }
#endif
}

/* The softmax of the rows, complete, and rotated back. */
static inline void
finish_rows(const struct attention *a, const struct query *r, struct sums *sums,
            __global STORAGE(SRC) * out)
{
    const float norm = row_norm(a, r->head, sums->m, sums->l);
    rotate_rows(sums);
#pragma unroll
    for (uint i = 0; i < VALUE_BLOCKS; i++) {
        const uint d = r->first_value + i * 16;
        float even[8], odd[8];
        uint words[8];
        vstore8(sums->o[i][0] * norm, 0, even);
        vstore8(sums->o[i][1] * norm, 0, odd);
#pragma unroll
        for (int w = 0; w < 8; w++)
            words[w] = two_halves(even[w], odd[w]);
        if (d < DV && !r->repeats)
            vstore8(vload8(0, words), 0, (__global uint *)(out + r->row * DV + d));
    }
}
