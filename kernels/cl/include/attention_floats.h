/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys and values for f32 multiply-adds (attention_tile.h): either tiles of floats, or, if the
 * cache has halves and the processor converts 16 of them at once, the rows of the cache in place.
 */
/* Number of partial sums for each of n rows: with fewer than about 8 independent vectors, additions
 * would wait for each other. */
#define PARTS(n) ((n) == 1 ? 4 : (n) == 2 ? 2 : 1)

/* Defines a function that loads elements [i, i + 16) of a row of n elements of a cache of type T,
 * zeros behind the row's end. */
#define LOADER(name, T)                                                                  \
    static inline float16 name(struct cached from, int i, int n)                         \
    {                                                                                    \
        float v[16] = {0};                                                               \
        if (i + 16 <= n)                                                                 \
            return CACHED16(T, from, i);                                                 \
        for (int j = 0; i + j < n; j++)                                                  \
            v[j] = CACHED(T, from, i + j);                                               \
        return vload16(0, v);                                                            \
    }

/* Adds to sum[j * PARTS(n) + e] the products of numbers x[j][k] and vectors VECTOR(k, w) of row k,
 * for k = e, e + PARTS(n), ... */
#define ADD_PRODUCTS(sum, x, x_stride, VECTOR, steps, n, width)                          \
    for (int k = 0; k < (steps); k += PARTS(n))                                          \
        _Pragma("unroll") for (int e = 0; e < PARTS(n); e++)                             \
        {                                                                                \
            float16 v[WIDTH];                                                            \
            _Pragma("unroll") for (int w = 0; w < (width); w++) v[w] = VECTOR(k + e, w); \
            _Pragma("unroll") for (int j = 0; j < (n); j++)                              \
                _Pragma("unroll") for (int w = 0; w < (width); w++)                      \
                    sum[j * PARTS(n) + e][w] += (x)[j * (x_stride) + k + e] * v[w];      \
        }

/* Returns the sum of the partial sums of vector w of row j. */
__attribute__((always_inline)) static inline float16
sum_parts(float16 sum[MANY_ROWS][WIDTH], int j, int w, const int n)
{
    float16 all = sum[j * PARTS(n)][w];
#pragma unroll
    for (int e = 1; e < PARTS(n); e++)
        all += sum[j * PARTS(n) + e][w];
    return all;
}

#if !K_SHORTS
/* ---- keys --------------------------------------------------------------------------- */

struct queries {
    float q[TILE_ROWS * D_PAD] LINES; /* scaled */
};

static void
put_query(struct queries *to, int i, __global const STORAGE(SRC) * q, float scale)
{
    int d = 0;
    for (; d + 16 <= D; d += 16)
        vstore16(LOAD16(SRC, q, d) * scale, 0, to->q + i * D_PAD + d);
    for (; d < D_PAD; d++)
        to->q[i * D_PAD + d] = d < D ? LOAD(SRC, q, d) * scale : 0.0f;
}

#if K_HALVES
struct key_tile {
    const struct cached *row, *next;
};

static void
fill_keys(struct key_tile *t, const struct cached *key, const struct cached *next,
          bool keeps)
{
    t->row = key;
    t->next = next;
}

static inline float16
sum_of_floats(float16 a, float16 b)
{
    return a + b;
}

/* Sets s to 16 vectors: element sums of these vectors are the dot products of n rows of q with the
 * 16 / n keys from `at` on, row by row. `fetches`: prefetches the same keys of the next tile. */
__attribute__((always_inline)) static inline void
multiply_keys(const float *q, const struct key_tile *t, int at, bool fetches, const int n,
              float16 s[16])
{
    const int keys = 16 / n;
#pragma unroll
    for (int j = 0; j < 16; j++)
        s[j] = 0.0f;
    for (int d = 0; d < D; d += 16) {
        float16 x[MANY_ROWS];
#pragma unroll
        for (int j = 0; j < n; j++)
            x[j] = *AT16(q + j * D_PAD + d);
#pragma unroll
        for (int e = 0; e < keys; e++) {
            const float16 k = wide_halves(t->row[at + e].values + 2 * d);
            if (fetches)
                fetch_line(t->next[at + e].values, 2 * d);
#pragma unroll
            for (int j = 0; j < n; j++)
                s[j * keys + e] += x[j] * k;
        }
    }
}

/* The dot products of n rows from row i on with the keys of the tile. */
__attribute__((always_inline)) static inline void
dots(const struct queries *from, const struct key_tile *t, int i, const int n, float *p)
{
    const int keys = 16 / n;
    float16 s[16], pairs[MANY_ROWS][8], fours[4];
    for (int first = 0; first < TILE_KEYS; first += 16) {
        for (int at = 0; at < 16; at += keys) {
            multiply_keys(from->q + i * D_PAD, t, first + at, i == 0, n, s);
#pragma unroll
            for (int j = 0; j < 8; j++)
                pairs[j * 2 / keys][at / 2 + j % (keys / 2)] =
                    FOLD_WORDS(sum_of_floats, s[2 * j], s[2 * j + 1]);
        }
#pragma unroll
        for (int j = 0; j < n; j++) {
#pragma unroll
            for (int e = 0; e < 4; e++)
                fours[e] =
                    FOLD_PAIRS(sum_of_floats, pairs[j][2 * e], pairs[j][2 * e + 1]);
            const float16 low = FOLD_FOURS(sum_of_floats, fours[0], fours[1]);
            const float16 high = FOLD_FOURS(sum_of_floats, fours[2], fours[3]);
            *AT16(p + j * TILE_KEYS + first) = FOLD_FOURS(sum_of_floats, low, high);
        }
    }
}
#else
LOADER(load_key, K_CACHE)

struct key_tile {
    float k[D_PAD * TILE_KEYS] LINES; /* [D_PAD][TILE_KEYS] */
    const struct cached *next;
};

static void
fill_keys(struct key_tile *t, const struct cached *key, const struct cached *next,
          bool keeps)
{
    t->next = next;
    for (int d = 0; d < D_PAD; d += 16)
        for (int first = 0; first < TILE_KEYS; first += 16) {
            int16 v[16];
#pragma unroll
            for (int i = 0; i < 16; i++)
                v[i] = as_int16(load_key(key[first + i], d, D));
            turn_16(v);
#pragma unroll
            for (int i = 0; i < 16; i++)
                *AT16(t->k + (d + i) * TILE_KEYS + first) = as_float16(v[i]);
        }
}

/* The dot products of n rows from row i on with the keys of the tile. */
__attribute__((always_inline)) static inline void
dots(const struct queries *from, const struct key_tile *t, int i, const int n, float *p)
{
#define KEY_VECTOR(d, w) AT16(t->k + (d)*TILE_KEYS + at)[w]
    for (int at = 0; at < TILE_KEYS; at += 16 * WIDTH) {
        float16 sum[MANY_ROWS][WIDTH];
#pragma unroll
        for (int j = 0; j < n * PARTS(n) * WIDTH; j++)
            sum[j / WIDTH][j % WIDTH] = 0.0f;
        ADD_PRODUCTS(sum, from->q + i * D_PAD, D_PAD, KEY_VECTOR, D_PAD, n, WIDTH)
#pragma unroll
        for (int j = 0; j < n; j++)
#pragma unroll
            for (int w = 0; w < WIDTH; w++)
                AT16(p + j * TILE_KEYS + at)[w] = sum_parts(sum, j, w, n);
        for (int j = at; i == 0 && j < at + 16 * WIDTH; j++)
            for (int line = 0; line < ROW_BYTES(K_CACHE, D); line += 64)
                fetch_line(t->next[j].values, line);
    }
}
#endif
#endif

#if !V_SHORTS
/* ---- values ------------------------------------------------------------------------- */

#if V_HALVES
/* Rows that no query attends to are replaced by zeros, because their memory may hold NaN. */
struct value_tile {
    __global const uchar *row[TILE_KEYS];
    const struct cached *next;
    ushort zeros[DV] LINES;
};

static void
fill_values(struct value_tile *t, const struct cached *value, const struct cached *next,
            const float *bias, bool keeps)
{
    /* the cast is valid, because a CPU has a single address space */
    __global const uchar *const zeros = (__global const uchar *)(ulong)t->zeros;
    t->next = next;
    for (int d = 0; d < DV; d++)
        t->zeros[d] = 0;
    for (int j = 0; j < TILE_KEYS; j++)
        t->row[j] = bias[j] == 0.0f ? value[j].values : zeros;
}

/* Returns dimensions [d, d + 16) of row k; `fetches`: prefetches those of the next tile. */
static inline float16
value_vector(const struct value_tile *t, int k, int d, bool fetches)
{
    if (fetches)
        fetch_line(t->next[k].values, 2 * d);
    return wide_halves(t->row[k] + 2 * d);
}
#else
LOADER(load_value, V_CACHE)

/* Loads 32 elements of a row of u4, from i on. */
static inline void
load_packed(struct cached from, int i, float *to)
{
    const int16 q = convert_int16(vload16(i / 32, from.values));
    const struct block low = BLOCK_u4(from, i), high = BLOCK_u4(from, i + 16);
    AT16(to)[0] = levels16(convert_float16(q & 15), low.centre) * low.scale;
    AT16(to)[1] = levels16(convert_float16(q >> 4), high.centre) * high.scale;
}

struct value_tile {
    float v[TILE_KEYS * DV_PAD] LINES; /* [TILE_KEYS][DV_PAD] */
    const struct cached *next;
};

static void
fill_values(struct value_tile *t, const struct cached *value, const struct cached *next,
            const float *bias, bool keeps)
{
    t->next = next;
    for (int j = 0; j < TILE_KEYS; j++) {
        float *to = t->v + j * DV_PAD;
        const bool is_seen = bias[j] == 0.0f;
        int d = 0;
        for (; IS_4_BITS(V_CACHE) && is_seen && d < DV; d += 32)
            load_packed(value[j], d, to + d);
        for (; d < DV_PAD; d += 16)
            *AT16(to + d) = is_seen ? load_value(value[j], d, DV) : (float16)0.0f;
    }
}

static inline float16
value_vector(const struct value_tile *t, int k, int d, bool fetches)
{
    if (fetches)
        fetch_line(t->next[k].values, ROW_BYTES(V_CACHE, d));
    return *AT16(t->v + k * DV_PAD + d);
}
#endif

struct weights { /* floats: the weights are read from struct rows */
    int none;
};

/* Nothing to convert: add_dims reads the weights p of the rows as floats. */
#define PUT_WEIGHTS(to, t, i, n, p)

/* Computes o = o keep + p v for n rows from row i on, dimensions [d, d + 16 * width). */
__attribute__((always_inline)) static inline void
add_dims(const struct weights *from, const float *p, const struct value_tile *t, int i,
         int d, const float *keep, float *o, const int n, const int width)
{
#define VALUE_VECTOR(k, w) value_vector(t, k, d + 16 * (w), i == 0)
    float16 sum[MANY_ROWS][WIDTH];
#pragma unroll
    for (int j = 0; j < n * PARTS(n); j++)
#pragma unroll
        for (int w = 0; w < width; w++)
            sum[j][w] = j % PARTS(n)
                            ? (float16)0.0f
                            : AT16(o + j / PARTS(n) * DV_PAD + d)[w] * keep[j / PARTS(n)];
    ADD_PRODUCTS(sum, p, TILE_KEYS, VALUE_VECTOR, TILE_KEYS, n, width)
#pragma unroll
    for (int j = 0; j < n; j++)
#pragma unroll
        for (int w = 0; w < width; w++)
            AT16(o + j * DV_PAD + d)[w] = sum_parts(sum, j, w, n);
}
#endif
