/* SPDX-License-Identifier: Apache-2.0
 *
 *     out[r,h,:]    = softmax_j(scale q.k_j + mask) v_j           (sinks in the denominator)
 *
 * Attention on matrix engines (matrix_mad.h). A sub-group computes TILE_ROWS rows (token, head)
 * that share one head of K and V, for KEYS keys at a time:
 *
 *     s [ROWS][KEYS]    = q [ROWS][D] k^T [D][KEYS]            a is q, b is k^T: a key a lane
 *     p [ROWS][KEYS]    = 2^(c (s - m))                        c is scale log2 e
 *     o [ROWS][VALUES] += p [ROWS][KEYS] v [KEYS][VALUES]      a is p, b is v: a value a lane
 *
 * The second product takes the weights p from the lanes in which the first product leaves the
 * scores. q is in local memory, in the layout of operand a. m, the maximum of a row, is raised only
 * if a score is so much larger that its weight would exceed 2^MOST_GROWTH. So sums are rescaled
 * rarely, and scores of different lanes are compared rarely.
 *
 * A loop without masks computes the tiles of keys that all rows see completely, then a loop with
 * masks computes the other tiles. Heads of more than 128 values are computed in parts by several
 * sub-groups, each of which computes the scores.
 *
 * The host makes sure that D is a multiple of 64, that DV and PAGE_TOKENS are multiples of 16 (so
 * that the keys of a unit are neighbours in a page), that SRC is f16 and no cache is f32, that
 * scale is above 0, and that a work-group has at most SUB_GROUPS sub-groups. Other D are not
 * supported.
 *
 *   ROW_BLOCKS  blocks of 8 rows of a sub-group
 *   KEYS        keys at a time, a multiple of UNIT
 */
#include "matrix_queries.h"
#include "sub_group_rotation.h"

#define KEY_BLOCKS  (KEYS / SG) /* blocks of SG keys, a key a lane */
#define SLOT_BLOCKS (KEYS / 16) /* blocks of 16 keys, those of a matrix b */
/* Keys at a time in the loop with masks, which needs more registers. */
#define PART_KEYS   (SG == 8 ? 16 : KEYS)
#define LOG2_E      1.44269504f
/* LEAST_SCORE: the lowest score of a key that is not hidden. NO_SCORE: the maximum of a row before
 * its first key, below all scores that are not hidden. */
#define LEAST_SCORE -1e37f
#define NO_SCORE    -2e37f
#define MOST_GROWTH 8.0f /* weights stay below 2^8 */

/* ---- scores -------------------------------------------------------------------------- */

static inline matrix_a
query_matrix(const struct query *r, uint i, uint step)
{
    return local_matrix(r->q + (i * (D / 16) + step) * 8 * SG);
}

/* s = the products of the rows with the first `keys` keys of a tile; `keys` is a compile-time
 * constant, also in the functions below. If one step of K is read at a time, a step of q is kept in
 * registers for all blocks of keys; else it is read for each block, for lack of registers. */
static inline void
dots(const struct query *r, const struct unit u[UNITS], uint keys, bool is_near,
     float8 s[KEY_BLOCKS][ROW_BLOCKS])
{
    uint scales[KEY_BLOCKS];
    UNROLL_PRODUCTS
    for (uint b = 0; b < keys / SG; b++)
        UNROLL_PRODUCTS
        for (uint i = 0; i < ROW_BLOCKS; i++)
            s[b][i] = 0.0f;
    UNROLL_PRODUCTS
    for (uint step = 0; step < D / 16; step += READ_STEPS) {
        matrix_a q[ROW_BLOCKS];
        UNROLL_PRODUCTS
        for (uint i = 0; i < ROW_BLOCKS; i++)
            q[i] = query_matrix(r, i, step);
        UNROLL_PRODUCTS
        for (uint b = 0; b < keys / SG; b++) {
            const struct unit *of = &u[b * SG / UNIT];
            int8 k[READ_STEPS];
            if (step % SCALED_STEPS == 0)
                scales[b] = key_scales(of, b * SG % UNIT, step, is_near);
            key_matrices(of, b * SG % UNIT, step, scales[b], is_near, k);
            UNROLL_PRODUCTS
            for (uint n = 0; n < READ_STEPS; n++)
                UNROLL_PRODUCTS
                for (uint i = 0; i < ROW_BLOCKS; i++)
                    s[b][i] = matrix_mad(READ_STEPS == 1 ? q[i]
                                                         : query_matrix(r, i, step + n),
                                         k[n], s[b][i]);
        }
    }
}

/* Replaces each score s by cap tanh(s / cap). cap is soft_cap / scale, because scores are
 * multiplied by scale later. */
static inline void
cap_scores(const struct attention *a, float8 s[KEY_BLOCKS][ROW_BLOCKS])
{
    const float cap = a->soft_cap / a->scale, twice = 2.0f / cap;
    UNROLL_PRODUCTS
    for (uint b = 0; b < PART_KEYS / SG; b++)
        UNROLL_PRODUCTS
        for (uint i = 0; i < ROW_BLOCKS; i++)
            s[b][i] = cap - 2.0f * cap / (native_exp(s[b][i] * twice) + 1.0f);
}

/* Returns the score s of row i and the key at position j after adding the explicit mask: -INFINITY
 * if the mask hides the key, else at least LEAST_SCORE. */
static inline float
masked_score(const struct attention *a, const struct query *r, int i, int j, float s)
{
    const float added = mask_at(a, &r->s, row_head(r, i), row_token(r, i), j);
    return added == -INFINITY ? added : fmax(s + added / a->scale, LEAST_SCORE);
}

/* Sets the scores of keys that a row does not see to -INFINITY, in a tile from position j on.
 * is_there[b]: whether any row sees this lane's key of block b. Each row has a branch of its own,
 * so that registers hold few addresses of the explicit mask at a time. */
static inline void
mask_scores(const struct attention *a, const struct query *r, int j,
            const bool is_there[KEY_BLOCKS], float8 s[KEY_BLOCKS][ROW_BLOCKS])
{
    UNROLL_PRODUCTS
    for (int i = 0; i < TILE_ROWS; i++) {
        const int token = row_token(r, i), low = first_seen(a, &r->s, token),
                  end = end_seen(&r->s, token);
        UNROLL_PRODUCTS
        for (int b = 0; b < PART_KEYS / SG; b++) {
            const int at = j + b * SG + (int)key_of(get_sub_group_local_id());
            float *score = (float *)&s[b][i / 8] + i % 8;
            if (a->mask_bits)
                *score = masked_score(a, r, i, clamp(at, 0, r->s.keys - 1), *score);
            *score = is_there[b] && at >= low && at < end ? *score : -INFINITY;
        }
    }
}

/* ---- rows ---------------------------------------------------------------------------- */

/* The sums of the online softmax. m: the maximum of a row; l: this lane's part of the sum of a
 * row's weights; o: sums of values times weights. */
struct sums {
    float m[TILE_ROWS];
    float8 l[ROW_BLOCKS], o[ROW_BLOCKS][VALUE_CHUNKS];
};

static inline void
clear_sums(struct sums *sums)
{
    UNROLL_PRODUCTS
    for (uint i = 0; i < TILE_ROWS; i++)
        sums->m[i] = NO_SCORE;
    UNROLL_PRODUCTS
    for (uint i = 0; i < ROW_BLOCKS; i++) {
        sums->l[i] = 0.0f;
        UNROLL_PRODUCTS
        for (uint c = 0; c < VALUE_CHUNKS; c++)
            sums->o[i][c] = 0.0f;
    }
}

/* If is_grown: raises the maximum of each row to the largest of `most` over all lanes, and rescales
 * the row's sums. Emulated exchanges between lanes must not be in a branch (sub_group.h): then the
 * same steps run in any case, without effect unless is_grown. */
static inline void
raise_maximums(struct sums *sums, float8 most[ROW_BLOCKS], bool is_grown, float c)
{
#if MATRIX_ENGINE
    if (!is_grown)
        return;
#endif
    UNROLL_PRODUCTS
    for (uint i = 0; i < ROW_BLOCKS; i++) {
        float lanes[8], keep[8];
        vstore8(most[i], 0, lanes);
        UNROLL_PRODUCTS
        for (uint n = 0; n < 8; n++) {
            float *m = &sums->m[i * 8 + n];
            const float new = fmax(*m, sub_group_reduce_max(lanes[n]));
            keep[n] = is_grown ? native_exp2((*m - new) * c) : 1.0f;
            *m = is_grown ? new : *m;
        }
        const float8 factors = vload8(0, keep);
        sums->l[i] *= factors;
        UNROLL_PRODUCTS
        for (uint v = 0; v < VALUE_CHUNKS; v++)
            sums->o[i][v] *= factors;
    }
}

/* A step of the online softmax: replaces the scores by weights, and adds these to l. */
static inline void
weigh(const struct attention *a, struct sums *sums, uint keys,
      float8 s[KEY_BLOCKS][ROW_BLOCKS])
{
    const float c = a->scale * LOG2_E;
    float8 most[ROW_BLOCKS], growth = -INFINITY;
    UNROLL_PRODUCTS
    for (uint i = 0; i < ROW_BLOCKS; i++) {
        most[i] = s[0][i];
        UNROLL_PRODUCTS
        for (uint b = 1; b < keys / SG; b++)
            most[i] = fmax(most[i], s[b][i]);
        growth = fmax(growth, most[i] - vload8(i, sums->m));
    }
    const float4 four = fmax(growth.lo, growth.hi);
    const float2 two = fmax(four.lo, four.hi);
    const float largest = sub_group_reduce_max(fmax(two.x, two.y));
    raise_maximums(sums, most, largest * c > MOST_GROWTH, c);
    UNROLL_PRODUCTS
    for (uint i = 0; i < ROW_BLOCKS; i++) {
        const float8 base = vload8(i, sums->m) * -c;
        UNROLL_PRODUCTS
        for (uint b = 0; b < keys / SG; b++) {
            s[b][i] = native_exp2(s[b][i] * c + base);
            sums->l[i] += s[b][i];
        }
    }
}

/* o += p v. `kept`: for each 16 keys the mask of the values that exist (slot_masks); NULL: all
 * exist, and the units are near. */
static inline void
add_values(const struct query *r, const struct unit u[UNITS], uint keys,
           float8 p[KEY_BLOCKS][ROW_BLOCKS], const uint8 *kept, struct sums *sums)
{
    matrix_a a[SLOT_BLOCKS][ROW_BLOCKS];
    UNROLL_PRODUCTS
    for (uint k = 0; k < keys / 16; k++)
        UNROLL_PRODUCTS
        for (uint i = 0; i < ROW_BLOCKS; i++)
            a[k][i] = weight_matrix(p[k * 16 / SG][i], p[k * 16 / SG + 8 / SG][i]);
    UNROLL_PRODUCTS
    for (uint c = 0; c < VALUE_CHUNKS; c += READ_CHUNKS) {
        const uint first = min(r->first_value + c * SG, (uint)(DV - READ_CHUNKS * SG));
        UNROLL_PRODUCTS
        for (uint k = 0; k < keys; k += READ_KEYS) {
            struct values v;
            read_values(&u[k / UNIT], k % UNIT, first, !kept, &v);
            UNROLL_PRODUCTS
            for (uint n = 0; n < READ_MATRICES; n++) {
                const uint block = k / 16 + n / READ_CHUNKS, to = c + n % READ_CHUNKS;
                slots factors;
                const int8 numbers = value_matrix(&v, n, &factors),
                           b = kept ? numbers & as_int8(kept[block]) : numbers;
                UNROLL_PRODUCTS
                for (uint i = 0; i < ROW_BLOCKS; i++)
                    sums->o[i][to] = matrix_mad(chunk_weights(a[block][i], factors), b,
                                                sums->o[i][to]);
            }
        }
    }
}

/* ---- tiles of keys ------------------------------------------------------------------- */

/* Moves u to the units of a tile of `keys` keys from position j on, and sets is_there[i] to whether
 * unit i has a page. A unit without a page is moved to the start of the cache, where reads are
 * valid. Returns whether all units have pages and are near (matrix_reads.h). */
static inline bool
find_units(const struct attention *a, const struct query *r, int j, int keys,
           struct unit u[UNITS], bool is_there[UNITS])
{
    bool all = true;
    UNROLL_PRODUCTS
    for (int i = 0; i < (keys + UNIT - 1) / UNIT; i++) {
        const int at = j + i * UNIT;
        const bool is_key = at < r->tile_end && at + min(UNIT, keys) > r->tile_low;
        __global uchar *page = is_key ? page_of(&a->cache, &r->s, at) : 0;
        is_there[i] = page != 0;
        all = all && page;
        set_unit(&u[i], page ? page : a->cache.slab0, page ? page_row(r->head_kv, at) : 0);
        all = all && unit_is_near(&u[i]);
    }
    return all;
}

/* Computes a tile of PART_KEYS keys from position j on with masks. Of keys that no row sees the
 * scores are hidden, and the values, which may never have been written, are replaced by zeros. */
static inline void
attend_part(const struct attention *a, const struct query *r, int j, struct unit u[UNITS],
            struct sums *sums)
{
    bool has_page[UNITS], is_there[KEY_BLOCKS];
    float8 s[KEY_BLOCKS][ROW_BLOCKS];
    uint8 kept[SLOT_BLOCKS];
    find_units(a, r, j, PART_KEYS, u, has_page);
    UNROLL_PRODUCTS
    for (int b = 0; b < PART_KEYS / SG; b++) {
        const int at = j + b * SG + (int)key_of(get_sub_group_local_id());
        is_there[b] = has_page[b * SG / UNIT] && at >= r->tile_low && at < r->tile_end &&
                      !is_padding(a, &r->s, min(at, r->s.keys - 1));
    }
    UNROLL_PRODUCTS
    for (uint k = 0; k < PART_KEYS / 16; k++)
        kept[k] = slot_masks(is_there[k * 16 / SG], is_there[k * 16 / SG + 8 / SG]);
    dots(r, u, PART_KEYS, false, s);
    if (a->soft_cap != 0.0f)
        cap_scores(a, s);
    mask_scores(a, r, j, is_there, s);
    weigh(a, sums, PART_KEYS, s);
    add_values(r, u, PART_KEYS, s, kept, sums);
}

/* Returns the positions [x, y) of the whole tiles that all rows see and that need neither a mask
 * nor a soft cap; x == y: there are none. */
static inline int2
whole_tiles(const struct attention *a, const struct query *r)
{
    const int first = (r->whole_low + UNIT - 1) / UNIT * UNIT;
    const bool is_plain = a->soft_cap == 0.0f && !a->mask_bits && !a->key_mask_bytes;
    return (int2)(first, is_plain && r->whole_end > first
                             ? first + (r->whole_end - first) / KEYS * KEYS
                             : first);
}

/* Returns the position of the next tile with masks: j, or `end` if j is within [first, end), which
 * the loop without masks has computed. */
static inline int
next_tile(int j, int first, int end)
{
    return j >= first && j < end ? end : j;
}

/* Computes all tiles of keys. A missing page ends the loop without masks, which cannot skip a tile,
 * because exchanges between lanes must not be in a branch; the loop with masks does the rest. */
static inline void
attend(const struct attention *a, const struct query *r, struct sums *sums)
{
    const int2 whole = whole_tiles(a, r);
    const int before = whole.x - r->tile_low / 16 * 16;
    const int start = whole.x - (before + PART_KEYS - 1) / PART_KEYS * PART_KEYS;
    struct unit u[UNITS];
    bool has_page[UNITS];
    int done;
    stage_queries(a, r);
    UNROLL_PRODUCTS
    for (int i = 0; i < UNITS; i++)
        begin_unit(&u[i]);
#pragma unroll 1
    for (done = whole.x; done < whole.y && find_units(a, r, done, KEYS, u, has_page);
         done += KEYS) {
        float8 s[KEY_BLOCKS][ROW_BLOCKS];
        dots(r, u, KEYS, true, s);
        weigh(a, sums, KEYS, s);
        add_values(r, u, KEYS, s, 0, sums);
    }
#pragma unroll 1
    for (int j = next_tile(start, whole.x, done); j < r->tile_end;
         j = next_tile(j + PART_KEYS, whole.x, done))
        attend_part(a, r, j, u, sums);
}

/* ---- results ------------------------------------------------------------------------- */

/* Reorders a row's values so that neighbouring lanes have neighbouring values. Before, with 8
 * lanes, halves have the order of matrix_pairs.h, and nibbles have the even values in one chunk and
 * the odd ones in the next. */
static inline void
order_values(float y[VALUE_CHUNKS])
{
#if SG == 8 && IS_HALF(V_CACHE)
    UNROLL_PRODUCTS
    for (uint c = 0; c < VALUE_CHUNKS; c += PAIR_MATRICES)
        order_pairs(y + c);
#elif SG == 8 && IS_4_BITS(V_CACHE)
    const uint lane = get_sub_group_local_id();
    UNROLL_PRODUCTS
    for (uint c = 0; c < VALUE_CHUNKS; c += 2) {
        const float low_even = intel_sub_group_shuffle(y[c], lane / 2),
                    low_odd = intel_sub_group_shuffle(y[c + 1], lane / 2),
                    high_even = intel_sub_group_shuffle(y[c], 4 + lane / 2),
                    high_odd = intel_sub_group_shuffle(y[c + 1], 4 + lane / 2);
        y[c] = lane % 2 ? low_odd : low_even;
        y[c + 1] = lane % 2 ? high_odd : high_even;
    }
#endif
}

/* Returns the sum of the weights of row i, and sets y to this lane's values of the row, in
 * order. */
static inline float
take_row(const struct sums *sums, int i, float y[VALUE_CHUNKS])
{
    float l[8], values[8];
    vstore8(sums->l[i / 8], 0, l);
    UNROLL_PRODUCTS
    for (uint c = 0; c < VALUE_CHUNKS; c++) {
        vstore8(sums->o[i / 8][c], 0, values);
        y[c] = values[i % 8];
    }
    order_values(y);
    return sub_group_reduce_add(l[i % 8]);
}

/* Stores the rows' results: divides them by the sums of weights, and rotates the values back. */
static inline void
finish_rows(const struct attention *a, const struct query *r, const struct sums *sums,
            __global STORAGE(SRC) * out)
{
    UNROLL_PRODUCTS
    for (int i = 0; i < TILE_ROWS; i++) {
        float y[VALUE_CHUNKS];
        const float l = take_row(sums, i, y);
        const float norm = row_norm(a, row_head(r, i), sums->m[i] * a->scale, l);
        rotate_lanes(y, VALUE_CHUNKS, VALUE_ROTATION);
        UNROLL_PRODUCTS
        for (uint c = 0; c < VALUE_CHUNKS; c++) {
            const uint d = r->first_value + c * SG + get_sub_group_local_id();
            if (i < r->n && d < DV)
                STORE(SRC, out, row_index(r, i) * DV + d, y[c] * norm);
        }
    }
}
