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

#define FIRST_SCALE(T) PASTE(FIRST_SCALE_, T)
#define NUMBER_i8(b)   (b)
#define NUMBER_u4(b)   ((b) >> 1)
#define NUMBER(T, b)   PASTE(NUMBER_, T)(b)

/* Words of 16 bits of which the nearest integer is the lower half; x is not negative. */
#define WHOLE(x) as_int16((x) + 0x1p23f)

/* ---- rows --------------------------------------------------------------------------- */

/* 64 elements of a row. */
struct two {
    shorts a, b;
};

/* Of a block the share that its scale has of the row's largest, as 1 / 4 of 2^15; and what its
 * levels' numbers are added to. */
#define BLOCKS(n) ((n) / CACHE_BLOCK)
struct key_blocks {
    short share[TILE_KEYS][BLOCKS(D)], up[TILE_KEYS][BLOCKS(D)];
};
struct value_blocks {
    short share[TILE_KEYS][BLOCKS(DV)], up[TILE_KEYS][BLOCKS(DV)];
};

/* Words at any address. */
typedef struct __attribute__((packed)) {
    long v;
} loose_long;
typedef struct __attribute__((packed)) {
    uint8 v;
} loose_uint8;

/* Four shorts again and again. */
static inline shorts
four_blocks(const short *p)
{
    typedef long longs __attribute__((vector_size(64)));
    const long v = ((const loose_long *)p)->v;
    return (shorts)((longs){v, v, v, v, v, v, v, v});
}

#define FOUR(i)       i, i, i, i
#define SIXTEEN_OF(i) FOUR(i), FOUR(i), FOUR(i), FOUR(i)
#define PAIRS_OF(i, j)                                                                   \
    FOUR(i), FOUR(j), FOUR(i), FOUR(j), FOUR(i), FOUR(j), FOUR(i), FOUR(j)

/* Of i8: a has of each lane of 8 shorts four of block 0 and four of block 1, b of 2 and 3. */
static inline struct two
SHORTS_i8(__global const uchar *values, const short *share, const short *up)
{
    typedef char bytes __attribute__((vector_size(64)));
    const int16 x = __builtin_astype(((__global const loose_uint16 *)values)->v, int16);
    const bytes q = __builtin_astype(x.s048c159d26ae37bf, bytes);
    const bytes none = __builtin_astype((int16)0, bytes);
    const shorts s = four_blocks(share);
    const struct two t = {
        __builtin_ia32_pmulhrsw512(__builtin_astype(LOW_BYTES(none, q), shorts),
                                   PICK(s, s, PAIRS_OF(0, 1))),
        __builtin_ia32_pmulhrsw512(__builtin_astype(HIGH_BYTES(none, q), shorts),
                                   PICK(s, s, PAIRS_OF(2, 3)))};
    return t;
}

/* Of u4: a has block 0, then 2, b has 1 and 3. */
static inline struct two
SHORTS_u4(__global const uchar *values, const short *share, const short *up)
{
    typedef uchar bytes __attribute__((vector_size(32)));
    typedef ushort words __attribute__((vector_size(64)));
    const shorts levels = {LEVELS_16(-15.25f), LEVELS_16(-14.75f)};
    const bytes x = __builtin_astype(((__global const loose_uint8 *)values)->v, bytes);
    const words q = __builtin_convertvector(x, words);
    const shorts s = four_blocks(share), u = four_blocks(up);
    const shorts low = (shorts)(q & 15) | PICK(u, u, SIXTEEN_OF(0), SIXTEEN_OF(2));
    const shorts high = (shorts)(q >> 4) | PICK(u, u, SIXTEEN_OF(1), SIXTEEN_OF(3));
    const struct two t = {
        __builtin_ia32_pmulhrsw512(__builtin_ia32_permvarhi512(levels, low),
                                   PICK(s, s, SIXTEEN_OF(0), SIXTEEN_OF(2))),
        __builtin_ia32_pmulhrsw512(__builtin_ia32_permvarhi512(levels, high),
                                   PICK(s, s, SIXTEEN_OF(1), SIXTEEN_OF(3)))};
    return t;
}

/* Elements [d, d + 64) of a row, of which `blocks` has the blocks as row j. */
#define SHORTS(T, row, d, blocks, j)                                                     \
    PASTE(SHORTS_, T)                                                                    \
    ((row).values + ROW_BYTES(T, d), (blocks)->share[j] + BLOCKS(d),                     \
     (blocks)->up[j] + BLOCKS(d))

/* A function that says what the shorts of TILE_KEYS rows are multiplied with, and of what the
 * blocks are. */
#define BLOCKS_OF(name, T, n, STRUCT)                                                    \
    static void name(const struct cached *row, struct STRUCT *to, float *factor)         \
    {                                                                                    \
        float inverse[TILE_KEYS] LINES;                                                  \
        for (int j = 0; j < TILE_KEYS; j++) {                                            \
            uint most = 0;                                                               \
            for (int b = 0; b < BLOCKS(n); b++)                                          \
                most = max(most, (uint)row[j].scales[b]);                                \
            factor[j] = scale_of(NUMBER(T, most), FIRST_SCALE(T));                       \
        }                                                                                \
        for (int j = 0; j < TILE_KEYS; j += 16) {                                        \
            const float16 x = *AT16(factor + j);                                         \
            *AT16(inverse + j) = x > 0.0f ? MOST_SHORT / x : (float16)0.0f;              \
            *AT16(factor + j) = x * FACTOR(T);                                           \
        }                                                                                \
        for (int j = 0; j < TILE_KEYS; j++)                                              \
            for (int b = 0; b < BLOCKS(n); b++) {                                        \
                const uint e = row[j].scales[b];                                         \
                const float s = scale_of(NUMBER(T, e), FIRST_SCALE(T));                  \
                to->share[j][b] = (short)(int)(s * inverse[j] + 0.5f);                   \
                to->up[j][b] = (short)((e & 1) << 4);                                    \
            }                                                                            \
    }

#if K_SHORTS
/* ---- keys --------------------------------------------------------------------------- */

BLOCKS_OF(find_key_blocks, K_CACHE, D, key_blocks)

/* The pair of dimensions that word i of shorts a, b is. */
#define PAIR_i8(i, is_b) ((i) % 4 / 2 * 8 + (i) / 4 * 2 + (i) % 2 + (is_b)*16)
#define PAIR_u4(i, is_b) ((i) / 8 * 16 + (i) % 8 + (is_b)*8)
#define PAIR(T, i, is_b) PASTE(PAIR_, T)(i, is_b)

struct key_tile {
    int k[D / 2 * TILE_KEYS] LINES; /* [D / 2][TILE_KEYS], pairs of dimensions */
    float factor[TILE_KEYS] LINES;
};

/* Dimensions [d, d + 64) of 16 keys. */
static void
fill_dims(struct key_tile *t, const struct cached *key, const struct key_blocks *blocks,
          int first, int d)
{
    int16 a[16], b[16];
#pragma unroll
    for (int i = 0; i < 16; i++) {
        const struct two x = SHORTS(K_CACHE, key[first + i], d, blocks, first + i);
        a[i] = __builtin_astype(x.a, int16);
        b[i] = __builtin_astype(x.b, int16);
    }
    turn_16(a);
    turn_16(b);
#pragma unroll
    for (int i = 0; i < 16; i++) {
        int *to = t->k + d / 2 * TILE_KEYS + first;
        *(int16 *)(to + PAIR(K_CACHE, i, 0) * TILE_KEYS) = a[i];
        *(int16 *)(to + PAIR(K_CACHE, i, 1) * TILE_KEYS) = b[i];
    }
}

static void
fill_keys(struct key_tile *t, const struct cached *key)
{
    struct key_blocks blocks;
    find_key_blocks(key, &blocks, t->factor);
    for (int first = 0; first < TILE_KEYS; first += 16)
        for (int d = 0; d < D; d += 64)
            fill_dims(t, key, &blocks, first, d);
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
        const int16 k0 = *(const int16 *)(k + d * TILE_KEYS);
        const int16 k1 = *(const int16 *)(k + d * TILE_KEYS + 16);
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
        add_short_dims(from->q + i * (D / 2), t->k, d / 2, min(d + SUM_DIMS, D) / 2, n,
                       s);
#pragma unroll
        for (int j = 0; j < n; j++)
#pragma unroll
            for (int w = 0; w < WIDTH; w++) {
                const float16 x = convert_float16(s[j][w]);
                float16 *to = AT16(p + j * TILE_KEYS) + w;
                *to = d ? *to + x : x;
            }
    }
#pragma unroll
    for (int j = 0; j < n; j++)
#pragma unroll
        for (int w = 0; w < WIDTH; w++)
            AT16(p + j * TILE_KEYS)[w] *= from->factor[i + j] * AT16(t->factor)[w];
}
#endif

#if V_SHORTS
/* ---- values ------------------------------------------------------------------------- */

BLOCKS_OF(find_value_blocks, V_CACHE, DV, value_blocks)

struct value_tile {
    int v[TILE_KEYS / 2 * DV] LINES; /* [TILE_KEYS / 2][DV]: keys j and j + 16 */
    float factor[TILE_KEYS] LINES;
};

/* Puts shorts of two keys beside each other. */
static inline void
PUT_i8(int16 *to, struct two x, struct two y)
{
    to[0] = __builtin_astype(LOW_HALVES(x.a, y.a), int16);
    to[1] = __builtin_astype(HIGH_HALVES(x.a, y.a), int16);
    to[2] = __builtin_astype(LOW_HALVES(x.b, y.b), int16);
    to[3] = __builtin_astype(HIGH_HALVES(x.b, y.b), int16);
}

static inline void
PUT_u4(int16 *to, struct two x, struct two y)
{
    to[0] = __builtin_astype(FIRST_HALVES(x.a, y.a), int16);
    to[1] = __builtin_astype(FIRST_HALVES(x.b, y.b), int16);
    to[2] = __builtin_astype(LAST_HALVES(x.a, y.a), int16);
    to[3] = __builtin_astype(LAST_HALVES(x.b, y.b), int16);
}

static void
fill_values(struct value_tile *t, const struct cached *value, const float *bias)
{
    struct value_blocks blocks;
    find_value_blocks(value, &blocks, t->factor);
    for (int j = 0; j < 16; j++)
        for (int d = 0; d < DV; d += 64) {
            const struct two x = SHORTS(V_CACHE, value[j], d, &blocks, j);
            const struct two y = SHORTS(V_CACHE, value[j + 16], d, &blocks, j + 16);
            PASTE(PUT_, V_CACHE)((int16 *)(t->v + j * DV + d), x, y);
        }
}

struct weights {
    int p[TILE_ROWS *
          16] LINES; /* e^(score - m) times the values' factors: keys j, j + 16 */
    float factor[TILE_ROWS + MANY_ROWS];
};

/* The largest of each of 8 vectors of what is not negative. */
static inline float8
largest_of_each(const float16 v[8])
{
    int16 w[16];
    float16 most = 0.0f;
#pragma unroll
    for (int i = 0; i < 16; i++)
        w[i] = i < 8 ? as_int16(v[i]) : (int16)0;
    turn_16(w);
#pragma unroll
    for (int i = 0; i < 16; i++)
        most = larger(most, as_float16(w[i]));
    return most.lo;
}

/* The words of rows i ... i + n - 1, of their weights at p. */
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
    for (int j = 0; j < n; j++)
        *(int16 *)(to->p + (i + j) * 16) =
            (WHOLE(x[j][0] * inverse[j]) & 0xffff) | WHOLE(x[j][1] * inverse[j]) << 16;
}
#define PUT_WEIGHTS(to, t, i, n, p) put_weights(to, t, i, n, p)

/* As in attention_floats.h. */
__attribute__((always_inline)) static inline void
add_dims(const struct weights *from, const float *floats, const struct value_tile *t,
         int i, int d, const float *keep, float *o, const int n, const int width)
{
    const int *p = from->p + i * 16;
    int16 sum[MANY_ROWS][WIDTH];
#pragma unroll
    for (int j = 0; j < n; j++)
#pragma unroll
        for (int w = 0; w < width; w++)
            sum[j][w] = 0;
    for (int k = 0; k < 16; k++) {
        const int16 v0 = *(const int16 *)(t->v + k * DV + d);
        const int16 v1 = *(const int16 *)(t->v + k * DV + d + 16);
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
            float16 *to = AT16(o + j * DV_PAD + d) + w;
            *to = *to * keep[j] + convert_float16(sum[j][w]) * from->factor[i + j];
        }
}
#endif
