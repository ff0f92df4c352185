/* SPDX-License-Identifier: Apache-2.0
 *
 * The sequences of a run of attention, and the pages of the KV cache.
 *
 * Rows are flat: sequence s has the rows [subsequence_begins[s], subsequence_begins[s + 1]), its
 * token t is the row `begin + t`, at position past_lens[s] + t. Positions are below 2^31 - 4096, so
 * that int can also hold positions in the rest of the last tile; the rows of all heads plus 64 for
 * each sequence are below 2^31.
 *
 * Position j of sequence s is in the page of word block_indices[block_indices_begins[s] + j /
 * PAGE_TOKENS]: the slab in the bits from SLAB_SHIFT on, the page of the slab below them; a
 * negative word: no page. A page is
 *
 *     K [HEADS_KV][PAGE_TOKENS][D]    V [HEADS_KV][PAGE_TOKENS][DV]    the scales of the rows
 *     of K, of V, [HEADS_KV][PAGE_TOKENS][...]                         each 64-byte aligned
 *
 * A slab that does not exist has the address of one that does, so that every slab may be read.
 *
 *   K_CACHE, V_CACHE  element types of K and of V, and the formulas of their elements:
 *                       f16, f32  without scales
 *                       i8        q s
 *                       u4        n (n n + 512) s, n = 2 q - 15 + c: levels as dense as values that
 *                                 are normally distributed want them
 *                     A block of 16 elements has a byte b. s is (8 + e % 8) 2^(e / 8) - 8 times a
 *                     constant: e is b for i8, b / 2 for u4, where b % 2 says whether c is 1/4 or
 *                     -1/4: levels reach further above zero or below it. 32 elements of u4 are 16
 *                     bytes, the second block of them in the high halves. Rows with scales are
 *                     rotated (rotation.h).
 *   D, DV             head dimensions of K and V
 *   HEADS_KV, PAGE_TOKENS
 */
#include "types.h"

#ifndef K_CACHE
#define K_CACHE f16
#endif
#ifndef V_CACHE
#define V_CACHE f16
#endif
#ifndef D
#define D           64
#define DV          64
#define HEADS_Q     4
#define HEADS_KV    2
#define PAGE_TOKENS 16
#define CAUSAL      1
#endif

/* Bytes of a row of n elements, without scales, and of its scales. */
#define ROW_BYTES_f16(n)   ((n) * 2)
#define ROW_BYTES_f32(n)   ((n) * 4)
#define ROW_BYTES_i8(n)    (n)
#define ROW_BYTES_u4(n)    ((n) / 2)
#define ROW_BYTES(T, n)    PASTE(ROW_BYTES_, T)(n)
#define SCALE_BYTES_f16(n) 0
#define SCALE_BYTES_f32(n) 0
#define SCALE_BYTES_i8(n)  (((n) + CACHE_BLOCK - 1) / CACHE_BLOCK)
#define SCALE_BYTES_u4(n)  ((n) / CACHE_BLOCK)
#define SCALE_BYTES(T, n)  PASTE(SCALE_BYTES_, T)(n)

#define CACHE_BLOCK     16 /* elements that share a scale */
#define ALIGNED_64(n)   (((ulong)(n) + 63) / 64 * 64)
#define PAGE_ROWS       ((ulong)HEADS_KV * PAGE_TOKENS) /* rows of K in a page; as many of V */
#define VALUES_AT       ALIGNED_64(PAGE_ROWS * ROW_BYTES(K_CACHE, D))
#define KEY_SCALES_AT   (VALUES_AT + ALIGNED_64(PAGE_ROWS * ROW_BYTES(V_CACHE, DV)))
#define VALUE_SCALES_AT (KEY_SCALES_AT + ALIGNED_64(PAGE_ROWS * SCALE_BYTES(K_CACHE, D)))
#define PAGE_BYTES      (VALUE_SCALES_AT + ALIGNED_64(PAGE_ROWS * SCALE_BYTES(V_CACHE, DV)))

#define SLAB_SHIFT 28
#define SLAB_PAGES (1 << SLAB_SHIFT)

/* Kernel parameters of the cache and the sequences. */
#define CACHE_PARAMETERS                                                                 \
    __global uchar *slab0, __global uchar *slab1, __global uchar *slab2,                 \
        __global uchar *slab3, __global uchar *slab4, __global uchar *slab5,             \
        __global uchar *slab6, __global uchar *slab7, __global const int *past_lens,     \
        __global const int *subsequence_begins, __global const int *block_indices,       \
        __global const int *block_indices_begins

struct cache {
    __global uchar *slab0, *slab1, *slab2, *slab3, *slab4, *slab5, *slab6, *slab7;
    __global const int *past_lens, *subsequence_begins, *block_indices,
        *block_indices_begins;
};

#define CACHE_ARGUMENTS                                                                  \
    {                                                                                    \
        slab0, slab1, slab2, slab3, slab4, slab5, slab6, slab7, past_lens,               \
            subsequence_begins, block_indices, block_indices_begins                      \
    }

/* ---- sequences ---------------------------------------------------------------------- */

struct sequence {
    int index;
    int begin, tokens; /* its first row, and how many rows */
    int past, keys;    /* positions before the run; with the run's tokens */
    int first_page;    /* index in block_indices of the page of position 0 */
};

static inline struct sequence
sequence_at(const struct cache *c, int index)
{
    struct sequence s;
    s.index = index;
    s.begin = c->subsequence_begins[index];
    s.tokens = c->subsequence_begins[index + 1] - s.begin;
    s.past = c->past_lens[index];
    s.keys = s.past + s.tokens;
    s.first_page = c->block_indices_begins[index];
    return s;
}

/* Returns the last of the sequences [first, first + n) for which (rows before it) * per +
 * (sequences before it) * extra is at most `limit`. */
static inline int
find_sequence(const struct cache *c, int first, int n, uint per, uint extra, uint limit)
{
    int low = first, end = first + n;
    const int begin = c->subsequence_begins[first];
    while (end - low > 1) {
        const int mid = low + (end - low) / 2;
        const uint rows = (uint)(c->subsequence_begins[mid] - begin);
        if (rows * per + (uint)(mid - first) * extra <= limit)
            low = mid;
        else
            end = mid;
    }
    return low;
}

/* ---- pages -------------------------------------------------------------------------- */

/* Returns the page that holds a position; NULL: there is none. */
static inline __global uchar *
page_of(const struct cache *c, const struct sequence *s, int position)
{
    const long at = (long)s->first_page + (uint)position / PAGE_TOKENS;
    const int word = c->block_indices[at];
    const bool odd = word >> SLAB_SHIFT & 1, second = word >> SLAB_SHIFT & 2;
    __global uchar *a = odd ? c->slab1 : c->slab0, *b = odd ? c->slab3 : c->slab2,
                   *e = odd ? c->slab5 : c->slab4, *f = odd ? c->slab7 : c->slab6;
    a = second ? b : a;
    e = second ? f : e;
    a = word >> SLAB_SHIFT & 4 ? e : a;
    return word < 0 ? 0 : a + (ulong)(word & (SLAB_PAGES - 1)) * PAGE_BYTES;
}

/* Returns the row of a page's K and V that holds a head's position. */
static inline uint
page_row(int head_kv, int position)
{
    return (uint)head_kv * PAGE_TOKENS + (uint)position % PAGE_TOKENS;
}

/* A row of K or of V in a page; values NULL: no row. */
struct cached {
    __global uchar *values, *scales;
};

static inline struct cached
key_row(__global uchar *page, uint row)
{
    const struct cached r = {page + (ulong)row * ROW_BYTES(K_CACHE, D),
                             page + KEY_SCALES_AT + row * SCALE_BYTES(K_CACHE, D)};
    return r;
}

static inline struct cached
value_row(__global uchar *page, uint row)
{
    const struct cached r = {page + VALUES_AT + (ulong)row * ROW_BYTES(V_CACHE, DV),
                             page + VALUE_SCALES_AT + row * SCALE_BYTES(V_CACHE, DV)};
    return r;
}

/* Returns the n-th row behind a row of K (of V) in the same page. */
static inline struct cached
key_behind(struct cached k, uint n)
{
    const struct cached r = {k.values + n * ROW_BYTES(K_CACHE, D),
                             k.scales + n * SCALE_BYTES(K_CACHE, D)};
    return r;
}

static inline struct cached
value_behind(struct cached v, uint n)
{
    const struct cached r = {v.values + n * ROW_BYTES(V_CACHE, DV),
                             v.scales + n * SCALE_BYTES(V_CACHE, DV)};
    return r;
}

/* ---- elements ----------------------------------------------------------------------- */

#define HAS_SCALES_f16 0
#define HAS_SCALES_f32 0
#define HAS_SCALES_i8  1
#define HAS_SCALES_u4  1
#define HAS_SCALES(T)  PASTE(HAS_SCALES_, T)
#define IS_4_BITS_f16  0
#define IS_4_BITS_f32  0
#define IS_4_BITS_i8   0
#define IS_4_BITS_u4   1
#define IS_4_BITS(T)   PASTE(IS_4_BITS_, T)

/* Scale e is the float whose upper 12 bits are first + e, less the float of e = 0: evenly spaced
 * near zero, then 8 scales for each power of two. The float of e = 0 is 2^-23 for i8; 2^-19 for u4,
 * whose levels reach 11055 or more, so that with 7 bits of e the elements of a block may reach
 * 1290. */
#define FIRST_SCALE_i8 (104 * 8)
#define FIRST_SCALE_u4 (108 * 8)

static inline float
scale_of(uint e, uint first)
{
    return as_float((e + first) << 20) - as_float(first << 20);
}

/* The scale of a block, and for u4 the centre of its levels: level n = 2 q + centre. */
struct block {
    float scale, centre; /* see level() */
};

static inline struct block
block_i8(uint b)
{
    const struct block s = {scale_of(b, FIRST_SCALE_i8), 0.0f};
    return s;
}

static inline struct block
block_u4(uint b)
{
    const struct block s = {scale_of(b / 2, FIRST_SCALE_u4), b % 2 ? -14.75f : -15.25f};
    return s;
}

/* Functions that return the level (of u4) of q; every operation is exact. */
#define LEVEL(name, FLOAT)                                                               \
    static inline FLOAT name(FLOAT q, float centre)                                      \
    {                                                                                    \
        const FLOAT n = 2.0f * q + centre;                                               \
        return n * (n * n + 512.0f);                                                     \
    }
LEVEL(level, float)
LEVEL(levels4, float4)
LEVEL(levels16, float16)

/* Returns the address of the byte of element i of u4; packed_shift, the position of its four
 * bits. */
static inline __global uchar *
packed_byte(struct cached r, uint i)
{
    return r.values + i / 32 * 16 + i % 16;
}

static inline uchar
packed_shift(uint i)
{
    return i / 16 % 2 * 4;
}

/* The block of element i of a row; types without scales get scale 1. */
#define BLOCK_f16(r, i) ((struct block){1.0f, 0.0f})
#define BLOCK_f32(r, i) ((struct block){1.0f, 0.0f})
#define BLOCK_i8(r, i)  block_i8((r).scales[(i) / CACHE_BLOCK])
#define BLOCK_u4(r, i)  block_u4((r).scales[(i) / CACHE_BLOCK])
#define BLOCK(T, r, i)  PASTE(BLOCK_, T)(r, i)
#define BLOCK_OF(T, b)  PASTE(block_, T)(b) /* of scale byte b; types with scales only */

/* UNSCALED is element i of a row, not multiplied by its scale; UNSCALED16, 16 elements from i on, a
 * multiple of 16. b is their block. CACHED and CACHED16 include the scale. */
#define UNSCALED_f16(r, i, b)   LOAD_f16((__global const half *)(r).values, i)
#define UNSCALED_f32(r, i, b)   LOAD_f32((__global const float *)(r).values, i)
#define UNSCALED_i8(r, i, b)    LOAD_i8((__global const char *)(r).values, i)
#define UNSCALED_u4(r, i, b)                                                             \
    level((float)(*packed_byte(r, i) >> packed_shift(i) & 15), (b).centre)
#define UNSCALED(T, r, i, b)    PASTE(UNSCALED_, T)(r, i, b)
#define UNSCALED16_f16(r, i, b) LOAD16_f16((__global const half *)(r).values, i)
#define UNSCALED16_f32(r, i, b) LOAD16_f32((__global const float *)(r).values, i)
#define UNSCALED16_i8(r, i, b)  LOAD16_i8((__global const char *)(r).values, i)
#define UNSCALED16_u4(r, i, b)                                                           \
    levels16(                                                                            \
        convert_float16(vload16(0, packed_byte(r, i)) >> packed_shift(i) & (uchar)15),   \
        (b).centre)
#define UNSCALED16(T, r, i, b)  PASTE(UNSCALED16_, T)(r, i, b)

#define CACHED(T, r, i)         (UNSCALED(T, r, i, BLOCK(T, r, i)) * BLOCK(T, r, i).scale)
#define CACHED16(T, r, i)       (UNSCALED16(T, r, i, BLOCK(T, r, i)) * BLOCK(T, r, i).scale)

/* ---- rotation ----------------------------------------------------------------------- */

/* How many elements of a row of n elements are rotated together: the largest power of two that
 * divides n, at most 128. Below 16 the row is not rotated: 1. */
#define POWER_OF_TWO(n)   ((n) & -(n))
#define ROTATION(T, n)                                                                   \
    (!HAS_SCALES(T) || POWER_OF_TWO(n) < 16 ? 1                                          \
     : POWER_OF_TWO(n) > 128                ? 128                                        \
                                            : POWER_OF_TWO(n))
#define KEY_ROTATION   ROTATION(K_CACHE, D)
#define VALUE_ROTATION ROTATION(V_CACHE, DV)
