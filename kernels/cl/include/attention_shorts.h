/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiles of K and V of few bits for dot products of 16-bit integers (attention_tile.h).
 *
 * The elements of a row become integers of 14 bits that share a factor: those of a block are
 * multiplied with what its scale is of the row's largest. Queries are integers with a factor a row,
 * as large as sums with K stay below 2^31; the weights of a row and a tile, times the factors of
 * the values, integers of 14 bits with another.
 */
#define MOST_SHORT 8191.0f   /* of K, V and weights; of i8 there is -8192, too */
#define MOST_QUERY 32767.0f  /* of q */
#define SUM_DIMS   128       /* of q and K that are added up as integers */
#define MOST_SUM   262000.0f /* of their q, so that rounding and 2^13 times as much fit */

/* Levels of u4 as shorts. */
#define UNIT_LEVEL (11354.578125f / 32767.0f) /* 15.25 (15.25^2 + 512) is the largest */
#define SHORT_LEVEL(n)                                                                   \
    (short)((n) * ((n) * (n) + 512.0f) / UNIT_LEVEL + ((n) < 0.0f ? -0.5f : 0.5f))
#define LEVELS_2(n)  SHORT_LEVEL(n), SHORT_LEVEL((n) + 2.0f)
#define LEVELS_4(n)  LEVELS_2(n), LEVELS_2((n) + 4.0f)
#define LEVELS_8(n)  LEVELS_4(n), LEVELS_4((n) + 8.0f)
#define LEVELS_16(n) LEVELS_8(n), LEVELS_8((n) + 16.0f)

/* What the shorts of a row are multiplied with, but for its largest scale. */
#define FACTOR_i8 (128.0f / MOST_SHORT)
#define FACTOR_u4 (32768.0f * UNIT_LEVEL / MOST_SHORT)
#define FACTOR(T) PASTE(FACTOR_, T)

#define FIRST_SCALE(T)  PASTE(FIRST_SCALE_, T)
#define NUMBER_i8(b)    (b)
#define NUMBER_u4(b)    ((b) >> 1)
#define NUMBER(T, b)    PASTE(NUMBER_, T)(b)

/* ---- rows --------------------------------------------------------------------------- */

/* A short in both halves of a word, by its lower one. */
static inline shorts
both_blocks(int low, int high)
{
    return __builtin_astype((int16)((int8)low, (int8)high), shorts);
}

/* 32 bytes at any address. */
typedef struct __attribute__((packed)) {
    uint8 v;
} loose_uint8;

/* 32 elements of a row; share: of their two blocks' scales, of the largest as 1 / 8 of 2^15. */
static inline shorts
SHORTS_i8(__global const uchar *values, __global const uchar *scales, const int *share)
{
    typedef signed char bytes __attribute__((vector_size(32)));
    const bytes q =
        __builtin_astype(((__global const loose_uint8 *)values)->v, bytes);
    const shorts x = __builtin_convertvector(q, shorts) << 8;
    return __builtin_ia32_pmulhrsw512(x, both_blocks(share[0], share[1]));
}

static inline shorts
SHORTS_u4(__global const uchar *values, __global const uchar *scales, const int *share)
{
    const shorts levels = {LEVELS_16(-15.25f), LEVELS_16(-14.75f)};
    const ushort16 q = convert_ushort16(vload16(0, values));
    const shorts up = both_blocks((scales[0] & 1) * 0x100010, (scales[1] & 1) * 0x100010);
    const shorts i = __builtin_astype((uint16)(as_uint8(q & (ushort)15), as_uint8(q >> (ushort)4)), shorts) | up;
    return __builtin_ia32_pmulhrsw512(__builtin_ia32_permvarhi512(levels, i),
                                      both_blocks(share[0], share[1]));
}
#define SHORTS(T, r, d, share)                                                           \
    PASTE(SHORTS_, T)((r).values + ROW_BYTES(T, d), (r).scales + (d) / CACHE_BLOCK,      \
                      (share) + (d) / CACHE_BLOCK)

/* A function that says what a row's shorts are multiplied with, and the shares of its blocks. */
#define SHARES(name, T, n)                                                               \
    static inline float name(struct cached row, int *share)                              \
    {                                                                                    \
        uint most = 0;                                                                   \
        for (int b = 0; b < (n) / CACHE_BLOCK; b++)                                      \
            most = max(most, (uint)row.scales[b]);                                       \
        const float largest = scale_of(NUMBER(T, most), FIRST_SCALE(T));                 \
        const float inverse = largest > 0.0f ? MOST_SHORT / largest : 0.0f;              \
        for (int b = 0; b < (n) / CACHE_BLOCK; b++) {                                    \
            const float s = scale_of(NUMBER(T, (uint)row.scales[b]), FIRST_SCALE(T));    \
            share[b] = (int)(s * inverse + 0.5f) * 0x10001;                              \
        }                                                                                \
        return largest * FACTOR(T);                                                      \
    }

#if K_SHORTS
/* ---- keys --------------------------------------------------------------------------- */

SHARES(key_shares, K_CACHE, D)

struct key_tile {
    int k[D / 2 * TILE_KEYS] LINES; /* [D / 2][TILE_KEYS], pairs of dimensions */
    float factor[TILE_KEYS];
};

static void
fill_keys(struct key_tile *t, const struct cached *key)
{
    int share[TILE_KEYS][D / CACHE_BLOCK];
    for (int j = 0; j < TILE_KEYS; j++)
        t->factor[j] = key[j].values ? key_shares(key[j], share[j]) : 0.0f;
    for (int first = 0; first < TILE_KEYS; first += 16)
        for (int d = 0; d < D; d += 32) {
            int16 v[16];
#pragma unroll
            for (int i = 0; i < 16; i++) {
                const struct cached from = key[first + i];
                v[i] = from.values
                           ? __builtin_astype(
                                 SHORTS(K_CACHE, from, d, share[first + i]), int16)
                           : 0;
            }
            turn_16(v);
#pragma unroll
            for (int i = 0; i < 16; i++)
                vstore16(v[i], 0, t->k + (d / 2 + i) * TILE_KEYS + first);
        }
}

struct queries {
    int q[TILE_ROWS * D / 2] LINES; /* scaled; pairs */
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
        vstore8((x.even & 0xffff) | x.odd << 16, 0, to->q + (i * D + d) / 2);
    }
}

/* Products of pairs [first, end) with 16 * WIDTH keys. */
__attribute__((always_inline)) static inline void
add_short_dims(const int *q, const int *k, int first, int end, const int n,
               int16 s[MANY_ROWS][WIDTH])
{
#pragma unroll
    for (int j = 0; j < n; j++)
#pragma unroll
        for (int w = 0; w < WIDTH; w++)
            s[j][w] = 0;
    for (int d = first; d < end; d++) {
        const int16 k0 = vload16(0, k + d * TILE_KEYS);
        const int16 k1 = vload16(1, k + d * TILE_KEYS);
#pragma unroll
        for (int j = 0; j < n; j++) {
            const int16 x = q[j * (D / 2) + d];
            s[j][0] = add_pairs(s[j][0], x, k0);
            s[j][1] = add_pairs(s[j][1], x, k1);
        }
    }
}

/* As in attention_floats.h. */
__attribute__((always_inline)) static inline void
dots(const struct queries *from, const struct key_tile *t, int i, const int n, float *p)
{
    int16 s[MANY_ROWS][WIDTH];
    for (int d = 0; d < D; d += SUM_DIMS) {
        add_short_dims(from->q + i * (D / 2), t->k, d / 2, min(d + SUM_DIMS, D) / 2, n, s);
#pragma unroll
        for (int j = 0; j < n; j++)
#pragma unroll
            for (int w = 0; w < WIDTH; w++) {
                const float16 x = convert_float16(s[j][w]);
                vstore16(d ? vload16(w, p + j * TILE_KEYS) + x : x, w, p + j * TILE_KEYS);
            }
    }
#pragma unroll
    for (int j = 0; j < n; j++)
#pragma unroll
        for (int w = 0; w < WIDTH; w++)
            vstore16(vload16(w, p + j * TILE_KEYS) * from->factor[i + j] *
                         vload16(w, t->factor),
                     w, p + j * TILE_KEYS);
}
#endif

#if V_SHORTS
/* ---- values ------------------------------------------------------------------------- */

SHARES(value_shares, V_CACHE, DV)

struct value_tile {
    int v[TILE_KEYS / 2 * DV] LINES; /* [TILE_KEYS / 2][DV]: keys j and j + 16 */
    float factor[TILE_KEYS];
};

/* Shorts beside each other: the first and the last 16. */
#define LOW_SHORTS(a, b)                                                                 \
    PICK(a, b, 0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39, 8, 40, 9, 41, 10, \
         42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47)
#define HIGH_SHORTS(a, b)                                                                \
    PICK(a, b, 16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55, 24, 56,   \
         25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63)

static void
fill_values(struct value_tile *t, const struct cached *value)
{
    int share[TILE_KEYS][DV / CACHE_BLOCK];
    for (int j = 0; j < TILE_KEYS; j++)
        t->factor[j] = value[j].values ? value_shares(value[j], share[j]) : 0.0f;
    for (int j = 0; j < 16; j++) {
        const struct cached a = value[j], b = value[j + 16];
        for (int d = 0; d < DV; d += 32) {
            const shorts x = a.values ? SHORTS(V_CACHE, a, d, share[j]) : no_shorts();
            const shorts y =
                b.values ? SHORTS(V_CACHE, b, d, share[j + 16]) : no_shorts();
            vstore16(__builtin_astype(LOW_SHORTS(x, y), int16), 0, t->v + j * DV + d);
            vstore16(__builtin_astype(HIGH_SHORTS(x, y), int16), 1, t->v + j * DV + d);
        }
    }
}

struct weights {
    int p[TILE_ROWS * 16] LINES; /* e^(score - m) times the values' factors: keys j, j + 16 */
    float factor[TILE_ROWS];
};

static inline void
put_weights(struct weights *to, int i, const struct value_tile *t, float16 p0, float16 p1)
{
    p0 *= vload16(0, t->factor);
    p1 *= vload16(1, t->factor);
    const float largest = largest16(larger(p0, p1));
    const float inverse = largest > 1e-30f ? MOST_SHORT / largest : 0.0f;
    const int16 q0 = convert_int16_rte(p0 * inverse), q1 = convert_int16_rte(p1 * inverse);
    to->factor[i] = largest * (1.0f / MOST_SHORT) + sum16((p0 + p1) * 0.0f);
    vstore16(q0 | q1 << 16, 0, to->p + i * 16);
}

/* As in attention_floats.h. */
__attribute__((always_inline)) static inline void
add_dims(const struct weights *from, const struct value_tile *t, int i, int d,
         const float *keep, float *o, const int n, const int width)
{
    const int *p = from->p + i * 16;
    int16 sum[MANY_ROWS][WIDTH];
#pragma unroll
    for (int j = 0; j < n; j++)
#pragma unroll
        for (int w = 0; w < width; w++)
            sum[j][w] = 0;
    for (int k = 0; k < 16; k++) {
        const int16 v0 = vload16(0, t->v + k * DV + d), v1 = vload16(1, t->v + k * DV + d);
#pragma unroll
        for (int j = 0; j < n; j++) {
            const int16 x = p[j * 16 + k];
            sum[j][0] = add_pairs(sum[j][0], x, v0);
            sum[j][1] = add_pairs(sum[j][1], x, v1);
        }
    }
#pragma unroll
    for (int j = 0; j < n; j++)
#pragma unroll
        for (int w = 0; w < width; w++) {
            float *to = o + j * DV_PAD + d + 16 * w;
            vstore16(vload16(0, to) * keep[j] +
                         convert_float16(sum[j][w]) * from->factor[i + j],
                     0, to);
        }
}
#endif
