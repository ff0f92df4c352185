/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys and values of caches of type i8 and u4, multiplied as 16-bit integers (attention_tile.h).
 *
 * The elements of a row become 14-bit integers with one scale (attention_integers.h). A row of
 * queries becomes integers with one scale, as large as sums of products with K below 2^31 allow.
 * The weights e^(score - m) of a row in a tile, times the scales of the values, become 14-bit
 * integers with one scale.
 *
 * Elements are read in place, 16 bytes of each of four rows at once (a quad): 128-bit lane r of
 * quad a has row 4 r + a of 16 rows. A dot product with K is then the sum of four words of a lane,
 * which costs less than transposing the keys. The first rows of queries convert the elements as
 * they multiply them; if registers cannot hold all query rows at once, the tile keeps the integers.
 */
#include "attention_integers.h"

#define MOST_QUERY 32767.0f  /* largest integer of q */
#define SUM_DIMS   128       /* dimensions whose products are summed as integers */
/* most sum of |q| over these, so that sums of products with 2^13 and rounding fit */
#define MOST_SUM   262000.0f

/* The lower 16 bits of each lane are the integer nearest to x, which is not negative. */
#define WHOLE(x) as_int16((x) + 0x1p23f)

/* Prefetches the line at byte `at` of the rows of a quad; fetch_scales, the scales of TILE_KEYS
 * rows. */
static inline void
fetch_quad(const struct cached *row, uint at)
{
#pragma unroll
    for (int r = 0; r < 4; r++)
        fetch_line(row[4 * r].values, at);
}

static inline void
fetch_scales(const struct cached *row, uint bytes)
{
    for (uint j = 0; j < TILE_KEYS; j += bytes < 64 ? 64 / bytes : 1)
        fetch_line(row[j].scales, 0);
}

#if K_SHORTS
/* ---- keys --------------------------------------------------------------------------- */

struct key_tile {
    uint16 shares[SHARE_VECTORS(D)];
    shorts kept[D / QUAD_DIMS * QUADS * 4];
    float factor[TILE_KEYS] LINES;
    const struct cached *row, *next;
    bool keeps; /* whether `kept` is written when the first rows of queries convert */
};

static void
fill_keys(struct key_tile *t, const struct cached *key, const struct cached *next,
          bool keeps)
{
    find_shares(key, D, IS_4_BITS(K_CACHE), t->shares, t->factor);
    fetch_scales(next, SCALE_BYTES(K_CACHE, D));
    t->row = key;
    t->next = next;
    t->keeps = keeps;
}

/* Returns dimensions [d, d + QUAD_DIMS) of a quad of keys as integers. */
__attribute__((always_inline)) static inline void
take_keys(struct key_tile *t, uint quad, uint d, bool converts, shorts out[4])
{
    shorts *kept = t->kept + (d / QUAD_DIMS * QUADS + quad) * 4;
    if (!converts) {
#pragma unroll
        for (int v = 0; v < 4; v++)
            out[v] = kept[v];
        return;
    }
    fetch_quad(t->next + quad / 4 * 16 + quad % 4, ROW_BYTES(K_CACHE, d));
    PASTE(SHORTS_, K_CACHE)
    (t->row + quad / 4 * 16 + quad % 4, d, t->shares + d / 64 * QUADS + quad, out);
    if (t->keeps)
#pragma unroll
        for (int v = 0; v < 4; v++)
            kept[v] = out[v];
}

struct queries {
    /* the scaled integers, two in a word: of each 16 dimensions the even ones, then the odd ones */
    int q[TILE_ROWS * D / 2] LINES;
    float factor[TILE_ROWS];
};

static void
put_query(struct queries *to, int i, __global const STORAGE(SRC) * q, float scale)
{
    float16 most = 0.0f, wrong = 0.0f;
    float sum = 0.0f;
    for (int first = 0; first < D; first += SUM_DIMS) {
        float16 part = 0.0f;
        for (int d = first; d < min(first + SUM_DIMS, D); d += 16) {
            const float16 x = LOAD16(SRC, q, d) * scale;
            most = larger(most, fabs(x));
            part += fabs(x);
            wrong += x * 0.0f;
        }
        sum = fmax(sum, sum16(part));
    }
    const float unit = fmax(largest16(most) / MOST_QUERY, sum / MOST_SUM);
    const float inverse = unit > 1e-30f ? 1.0f / unit : 0.0f;
    to->factor[i] = unit + sum16(wrong);
    for (int d = 0; d < D; d += 16) {
        const int16 x = convert_int16_rte(LOAD16(SRC, q, d) * scale * inverse);
        const int16 y = (int16)(x.even, x.odd);
        vstore8((y.even & 0xffff) | y.odd << 16, 0, to->q + (i * D + d) / 2);
    }
}

static inline int16
sum_of(int16 a, int16 b)
{
    return a + b;
}

/* Sums the products of dimensions [first, end) with quads `quad` and `quad + 1`: `sums` has those
 * of the first quad in its even words, of the second in its odd words; two words of a 128-bit lane
 * add up to a dot product. */
__attribute__((always_inline)) static inline void
add_short_dims(const int *q, struct key_tile *t, uint quad, uint first, uint end,
               bool converts, const int n, int16 sums[MANY_ROWS])
{
    int16 s[MANY_ROWS][2];
#pragma unroll
    for (int j = 0; j < n; j++)
        s[j][0] = s[j][1] = 0;
    for (uint d = first; d < end; d += QUAD_DIMS) {
        shorts k[2][4];
        take_keys(t, quad, d, converts, k[0]);
        take_keys(t, quad + 1, d, converts, k[1]);
#pragma unroll
        for (int j = 0; j < n; j++)
#pragma unroll
            for (int v = 0; v < 4; v++) {
                const int4 x = *(const int4 *)(q + j * (D / 2) + d / 2 + 4 * v);
                const int16 of_rows = (int16)(x, x, x, x);
                s[j][0] = add_pairs(s[j][0], of_rows, __builtin_astype(k[0][v], int16));
                s[j][1] = add_pairs(s[j][1], of_rows, __builtin_astype(k[1][v], int16));
            }
    }
#pragma unroll
    for (int j = 0; j < n; j++)
        sums[j] = FOLD_WORDS(sum_of, s[j][0], s[j][1]);
}

/* As in attention_floats.h. */
__attribute__((always_inline)) static inline void
dots(const struct queries *from, struct key_tile *t, int i, const int n, float *p)
{
    const int *q = from->q + i * (D / 2);
    for (uint part = 0; part < TILE_KEYS / 16; part++)
        for (uint d = 0; d < D; d += SUM_DIMS) {
            const uint end = min(d + SUM_DIMS, (uint)D);
            int16 a[MANY_ROWS], b[MANY_ROWS];
            add_short_dims(q, t, 4 * part, d, end, i == 0, n, a);
            add_short_dims(q, t, 4 * part + 2, d, end, i == 0, n, b);
#pragma unroll
            for (int j = 0; j < n; j++) {
                const float16 x = convert_float16(FOLD_PAIRS(sum_of, a[j], b[j]));
                float16 *to = AT16(p + j * TILE_KEYS) + part;
                const float16 factor = from->factor[i + j] * AT16(t->factor)[part];
                *to = d ? *to + x * factor : x * factor;
            }
        }
}
#endif

#if V_SHORTS
/* ---- values ------------------------------------------------------------------------- */

struct value_tile {
    uint16 shares[SHARE_VECTORS(DV)];
    int16 kept[DV / QUAD_DIMS * QUADS * 4];
    float factor[TILE_KEYS] LINES;
    const struct cached *row, *next;
    bool keeps;
};

static void
fill_values(struct value_tile *t, const struct cached *value, const struct cached *next,
            const float *bias, bool keeps)
{
    find_shares(value, DV, IS_4_BITS(V_CACHE), t->shares, t->factor);
    fetch_scales(next, SCALE_BYTES(V_CACHE, DV));
    t->row = value;
    t->next = next;
    t->keeps = keeps;
}

/* Interleaves a block of two rows of a quad: of rows 0 and 1 if `at` is 0, of rows 2 and 3 if it is
 * 16. */
#define BESIDE(i) (i), (i) + 8, (i) + 32, (i) + 40
#define ROW_PAIRS(even, odd, at)                                                         \
    __builtin_astype(PICK(even, odd, BESIDE((at)), BESIDE((at) + 1), BESIDE((at) + 2),   \
                          BESIDE((at) + 3), BESIDE((at) + 4), BESIDE((at) + 5),          \
                          BESIDE((at) + 6), BESIDE((at) + 7)),                           \
                     int16)

/* Returns dimensions [d, d + QUAD_DIMS) of the first two rows of a quad, then of the other two,
 * interleaved. */
__attribute__((always_inline)) static inline void
take_values(struct value_tile *t, uint quad, uint d, bool converts, int16 out[4])
{
    int16 *kept = t->kept + (d / QUAD_DIMS * QUADS + quad) * 4;
    shorts x[4];
    if (!converts) {
#pragma unroll
        for (int v = 0; v < 4; v++)
            out[v] = kept[v];
        return;
    }
    fetch_quad(t->next + quad / 4 * 16 + quad % 4, ROW_BYTES(V_CACHE, d));
    PASTE(SHORTS_, V_CACHE)
    (t->row + quad / 4 * 16 + quad % 4, d, t->shares + d / 64 * QUADS + quad, x);
    out[0] = ROW_PAIRS(x[0], x[1], 0);
    out[1] = ROW_PAIRS(x[2], x[3], 0);
    out[2] = ROW_PAIRS(x[0], x[1], 16);
    out[3] = ROW_PAIRS(x[2], x[3], 16);
    if (t->keeps)
#pragma unroll
        for (int v = 0; v < 4; v++)
            kept[v] = out[v];
}

struct weights {
    /* e^(score - m) times the values' scales, two in a word: keys 0-3 and 8-11 of each 16 in the
     * low halves, 4-7 and 12-15 in the high halves */
    int p[TILE_ROWS * 16] LINES;
    float factor[TILE_ROWS + MANY_ROWS];
};

/* Converts the weights p of rows i ... i + n - 1 to integers, with a scale for each row. */
__attribute__((always_inline)) static inline void
put_weights(struct weights *to, const struct value_tile *t, int i, const int n,
            const float *p)
{
    float16 x[MANY_ROWS][2], most[MANY_ROWS];
    float inverse[MANY_ROWS];
#pragma unroll
    for (int j = 0; j < MANY_ROWS; j++) {
        x[j][0] = j < n ? AT16(p + j * TILE_KEYS)[0] * AT16(t->factor)[0] : (float16)0.0f;
        x[j][1] = j < n ? AT16(p + j * TILE_KEYS)[1] * AT16(t->factor)[1] : (float16)0.0f;
        most[j] = larger(x[j][0], x[j][1]);
    }
    const float8 largest = largest_of_each(most);
    vstore8(largest > 1e-30f ? MOST_SHORT / largest : (float8)0.0f, 0, inverse);
    vstore8(largest * (1.0f / MOST_SHORT), 0, to->factor + i);
#pragma unroll
    for (int j = 0; j < n; j++) {
        const int16 a = WHOLE(x[j][0] * inverse[j]), b = WHOLE(x[j][1] * inverse[j]);
        *(int16 *)(to->p + (i + j) * 16) = (EVEN_FOURS(a, b) & 0xffff) | ODD_FOURS(a, b)
                                                                             << 16;
    }
}
#define PUT_WEIGHTS(to, t, i, n, p) put_weights(to, t, i, n, p)

/* As in attention_floats.h. */
__attribute__((always_inline)) static inline void
add_dims(const struct weights *from, const float *floats, struct value_tile *t, int i,
         int d, const float *keep, float *o, const int n, const int width)
{
    const int *p = from->p + i * 16;
    int16 sum[MANY_ROWS][2];
#pragma unroll
    for (int j = 0; j < n; j++)
        sum[j][0] = sum[j][1] = 0;
    for (uint quad = 0; quad < QUADS; quad++) {
        int16 v[4];
        take_values(t, quad, d, i == 0, v);
#pragma unroll
        for (int j = 0; j < n; j++)
#pragma unroll
            for (int rows = 0; rows < 2; rows++) {
                const int16 x = p[j * 16 + quad / 4 * 8 + quad % 4 + 4 * rows];
                sum[j][0] = add_pairs(sum[j][0], x, v[2 * rows]);
                sum[j][1] = add_pairs(sum[j][1], x, v[2 * rows + 1]);
            }
    }
#pragma unroll
    for (int j = 0; j < n; j++)
#pragma unroll
        for (int w = 0; w < 2; w++) {
            float16 *to = AT16(o + j * DV_PAD + d) + w;
            *to = *to * keep[j] + convert_float16(sum[j][w]) * from->factor[i + j];
        }
}
#endif
