/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiles of K and V for f32 multiply-adds (attention_tile.h), as floats; or as halves, where these
 * are what the cache has, and the processor converts a vector of them at once.
 */
#if WIDE_HALVES
/* 16 of the halves at p, a multiple of 16 of them from an address of whole lines. */
static inline float16
wide_halves(const ushort *p)
{
    typedef short halves __attribute__((vector_size(32)));
    typedef float floats __attribute__((vector_size(64)));
    const floats none = __builtin_astype((float16)0.0f, floats);
    return __builtin_astype(
        __builtin_ia32_vcvtph2ps512_mask(*(const halves *)p, none, (ushort)0xffff, 4),
        float16);
}
#endif

/* What a tile holds, by whether it is halves, and 16 of it as floats. */
#define ELEMENT_0     float
#define ELEMENT_1     ushort
#define ELEMENT(H)    PASTE(ELEMENT_, H)
#define SIXTEEN_0(p)  (*AT16(p))
#define SIXTEEN_1(p)  wide_halves(p)
#define SIXTEEN(H, p) PASTE(SIXTEEN_, H)(p)

/* In how many parts the sums of n rows are made: fewer than 8 vectors wait for each other. */
#define PARTS(n) ((n) == 1 ? 4 : (n) == 2 ? 2 : 1)

/* A function that loads elements [i, i + 16) of n of a row of a cache of type T, zeros behind. */
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

#if !K_SHORTS
/* ---- keys --------------------------------------------------------------------------- */

LOADER(load_key, K_CACHE)

struct key_tile {
    ELEMENT(K_HALVES) k[D_PAD * TILE_KEYS] LINES; /* [D_PAD][TILE_KEYS] */
};

#if K_HALVES
/* Dimensions [d, d + 32) of all keys. */
static void
fill_dims(struct key_tile *t, const struct cached *key, int d)
{
    int16 low[16], high[16];
#pragma unroll
    for (int i = 0; i < 16; i++) {
        const shorts x = thirty_two(key[2 * i].values + 2 * d);
        const shorts y = thirty_two(key[2 * i + 1].values + 2 * d);
        low[i] = __builtin_astype(LOW_HALVES(x, y), int16);
        high[i] = __builtin_astype(HIGH_HALVES(x, y), int16);
    }
    turn_16(low);
    turn_16(high);
#pragma unroll
    for (int i = 0; i < 16; i++) {
        int16 *to = (int16 *)(t->k + (d + i / 4 * 8 + i % 4) * TILE_KEYS);
        to[0] = low[i];
        to[4] = high[i];
    }
}

static void
fill_keys(struct key_tile *t, const struct cached *key)
{
    for (int d = 0; d < D; d += 32)
        fill_dims(t, key, d);
}
#else
static void
fill_keys(struct key_tile *t, const struct cached *key)
{
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
#endif

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

/* The dot products of n rows from row i on with 16 * WIDTH keys. */
__attribute__((always_inline)) static inline void
dots_of(const struct queries *from, const struct key_tile *t, int i, int at, const int n,
        float *p)
{
    const float *q = from->q + i * D_PAD;
    const int parts = PARTS(n);
    float16 s[MANY_ROWS][WIDTH];
#pragma unroll
    for (int j = 0; j < n * parts * WIDTH; j++)
        s[j / WIDTH][j % WIDTH] = 0.0f;
    for (int d = 0; d < D_PAD; d += parts)
#pragma unroll
        for (int e = 0; e < parts; e++) {
            float16 k[WIDTH];
#pragma unroll
            for (int w = 0; w < WIDTH; w++)
                k[w] = SIXTEEN(K_HALVES, t->k + (d + e) * TILE_KEYS + at + 16 * w);
#pragma unroll
            for (int j = 0; j < n; j++)
#pragma unroll
                for (int w = 0; w < WIDTH; w++)
                    s[j * parts + e][w] += q[j * D_PAD + d + e] * k[w];
        }
#pragma unroll
    for (int j = 0; j < n; j++)
#pragma unroll
        for (int w = 0; w < WIDTH; w++) {
#pragma unroll
            for (int e = 1; e < parts; e++)
                s[j * parts][w] += s[j * parts + e][w];
            AT16(p + j * TILE_KEYS + at)[w] = s[j * parts][w];
        }
}

/* The dot products of n rows from row i on with the keys of the tile. */
__attribute__((always_inline)) static inline void
dots(const struct queries *from, const struct key_tile *t, int i, const int n, float *p)
{
    for (int at = 0; at < TILE_KEYS; at += 16 * WIDTH)
        dots_of(from, t, i, at, n, p);
}
#endif

#if !V_SHORTS
/* ---- values ------------------------------------------------------------------------- */

LOADER(load_value, V_CACHE)

/* 32 elements of a row of u4, from i on. */
static inline void
load_packed(struct cached from, int i, float *to)
{
    const int16 q = convert_int16(vload16(i / 32, from.values));
    const struct block low = BLOCK_u4(from, i), high = BLOCK_u4(from, i + 16);
    AT16(to)[0] = levels16(convert_float16(q & 15), low.centre) * low.scale;
    AT16(to)[1] = levels16(convert_float16(q >> 4), high.centre) * high.scale;
}

struct value_tile {
    ELEMENT(V_HALVES) v[TILE_KEYS * DV_PAD] LINES; /* [TILE_KEYS][DV_PAD] */
};

static void
fill_values(struct value_tile *t, const struct cached *value, const float *bias)
{
    for (int j = 0; j < TILE_KEYS; j++) {
        ELEMENT(V_HALVES) *to = t->v + j * DV_PAD;
        const bool is_seen = bias[j] == 0.0f;
#if V_HALVES
        for (int d = 0; d < DV; d += 32)
            *(shorts *)(to + d) =
                is_seen ? thirty_two(value[j].values + 2 * d) : no_shorts();
#else
        int d = 0;
        for (; IS_4_BITS(V_CACHE) && is_seen && d < DV; d += 32)
            load_packed(value[j], d, to + d);
        for (; d < DV_PAD; d += 16)
            *AT16(to + d) = is_seen ? load_value(value[j], d, DV) : (float16)0.0f;
#endif
    }
}

struct weights { /* none but those of struct rows */
    int none;
};

/* Rows i ... i + n - 1 of p as they are added up. */
#define PUT_WEIGHTS(to, t, i, n, p)

/* o = o keep + p v of n rows from row i on, dimensions [d, d + 16 * width). */
__attribute__((always_inline)) static inline void
add_dims(const struct weights *from, const float *p, const struct value_tile *t, int i,
         int d, const float *keep, float *o, const int n, const int width)
{
    const int parts = PARTS(n);
    float16 sum[MANY_ROWS][WIDTH];
#pragma unroll
    for (int j = 0; j < n * parts; j++)
#pragma unroll
        for (int w = 0; w < width; w++)
            sum[j][w] = j % parts ? (float16)0.0f
                                  : AT16(o + j / parts * DV_PAD + d)[w] * keep[j / parts];
    for (int k = 0; k < TILE_KEYS; k += parts)
#pragma unroll
        for (int e = 0; e < parts; e++) {
            float16 v[WIDTH];
#pragma unroll
            for (int w = 0; w < width; w++)
                v[w] = SIXTEEN(V_HALVES, t->v + (k + e) * DV_PAD + d + 16 * w);
#pragma unroll
            for (int j = 0; j < n; j++)
#pragma unroll
                for (int w = 0; w < width; w++)
                    sum[j * parts + e][w] += p[j * TILE_KEYS + k + e] * v[w];
        }
#pragma unroll
    for (int j = 0; j < n; j++)
#pragma unroll
        for (int w = 0; w < width; w++) {
#pragma unroll
            for (int e = 1; e < parts; e++)
                sum[j * parts][w] += sum[j * parts + e][w];
            AT16(o + j * DV_PAD + d)[w] = sum[j * parts][w];
        }
}
#endif
