/* SPDX-License-Identifier: Apache-2.0
 *
 * The sequences of a run of attention, and the pages that hold what came before.
 *
 * Rows are flat: sequence s has the rows [subsequence_begins[s], subsequence_begins[s + 1]), its
 * token t is the row `begin + t`, at position past_lens[s] + t. Positions are below 2^31 - 4096, so
 * that those behind the last tile can be counted, too; rows of all heads, and 64 a sequence beside,
 * are below 2^31.
 *
 * Page j / PAGE_TOKENS of a sequence, counted from block_indices_begins[s], is a word: a slab above
 * SLAB_SHIFT and a page of it, or below 0 where there is none. A page is
 *
 *     K [HEADS_KV][PAGE_TOKENS][D]    V [HEADS_KV][PAGE_TOKENS][DV]    the scales of the rows
 *     of K, of V, [HEADS_KV][PAGE_TOKENS][...]                         each 64-byte aligned
 *
 * Slabs that are not there have the address of one that is: any of them may be read.
 *
 *   K_CACHE, V_CACHE  of what the elements of K and of V are:
 *                       f16, f32  without scales
 *                       i8        an f32 scale a row
 *                       u4        blocks of 32 elements, an f16 scale each: ggml's Q4_0, but for
 *                                 the scales, which stand apart
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

/* Bytes of a row of n elements, and of its scales. */
#define ROW_BYTES_f16(n)   ((n) * 2)
#define ROW_BYTES_f32(n)   ((n) * 4)
#define ROW_BYTES_i8(n)    (n)
#define ROW_BYTES_u4(n)    ((n) / 2)
#define ROW_BYTES(T, n)    PASTE(ROW_BYTES_, T)(n)
#define SCALE_BYTES_f16(n) 0
#define SCALE_BYTES_f32(n) 0
#define SCALE_BYTES_i8(n)  4
#define SCALE_BYTES_u4(n)  ((n) / CACHE_BLOCK * 2)
#define SCALE_BYTES(T, n)  PASTE(SCALE_BYTES_, T)(n)

#define CACHE_BLOCK     32 /* elements of u4 that share a scale */
#define ALIGNED_64(n)   (((ulong)(n) + 63) / 64 * 64)
#define PAGE_ROWS       ((ulong)HEADS_KV * PAGE_TOKENS) /* of K; as many of V */
#define VALUES_AT       ALIGNED_64(PAGE_ROWS * ROW_BYTES(K_CACHE, D))
#define KEY_SCALES_AT   (VALUES_AT + ALIGNED_64(PAGE_ROWS * ROW_BYTES(V_CACHE, DV)))
#define VALUE_SCALES_AT (KEY_SCALES_AT + ALIGNED_64(PAGE_ROWS * SCALE_BYTES(K_CACHE, D)))
#define PAGE_BYTES      (VALUE_SCALES_AT + ALIGNED_64(PAGE_ROWS * SCALE_BYTES(V_CACHE, DV)))

#define SLAB_SHIFT 28
#define SLAB_PAGES (1 << SLAB_SHIFT)

/* Operands by name. */
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
    int begin, tokens; /* its rows */
    int past, keys;    /* positions before the run; with it */
    int first_page;    /* where the word of position 0 stands, or would */
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

/* The last of the sequences [first, first + n) before which there are no more than `limit` of
 * something that a row has `per` of and a sequence `extra` beside. */
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

/* The page that holds a position; NULL: none does. */
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

/* The row of a page, of K and of V, that holds a position of a head. */
static inline uint
page_row(int head_kv, int position)
{
    return (uint)head_kv * PAGE_TOKENS + (uint)position % PAGE_TOKENS;
}

/* A row of K or of V; values NULL: there is none. */
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

/* The n-th row behind one of K, of V, in a page. */
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

/* The scale of the block of u4 that element i is in. */
static inline float
block_scale(struct cached r, uint i)
{
    return vload_half(i / CACHE_BLOCK, (__global const half *)r.scales);
}

/* The byte of element i; elements 16 … 31 of a block are the high halves of its bytes. */
static inline __global uchar *
block_byte(struct cached r, uint i)
{
    return r.values + i / CACHE_BLOCK * 16 + i % 16;
}

static inline uchar
block_shift(uint i)
{
    return i / 16 % 2 * 4;
}

static inline float
block_element(struct cached r, uint i)
{
    return (float)((int)(*block_byte(r, i) >> block_shift(i) & 15) - 8) *
           block_scale(r, i);
}

/* Elements i … i + 15, i a multiple of 16. */
static inline float16
block_elements16(struct cached r, uint i)
{
    const uchar16 q = vload16(0, block_byte(r, i)) >> block_shift(i) & (uchar)15;
    return (convert_float16(q) - 8.0f) * block_scale(r, i);
}

/* Element i of a row, and 16 from i on, a multiple of 16; times ROW_SCALE where a row has one. */
#define CACHED_f16(r, i)   LOAD_f16((__global const half *)(r).values, i)
#define CACHED_f32(r, i)   LOAD_f32((__global const float *)(r).values, i)
#define CACHED_i8(r, i)    LOAD_i8((__global const char *)(r).values, i)
#define CACHED_u4(r, i)    block_element(r, i)
#define CACHED(T, r, i)    PASTE(CACHED_, T)(r, i)
#define CACHED16_f16(r, i) LOAD16_f16((__global const half *)(r).values, i)
#define CACHED16_f32(r, i) LOAD16_f32((__global const float *)(r).values, i)
#define CACHED16_i8(r, i)  LOAD16_i8((__global const char *)(r).values, i)
#define CACHED16_u4(r, i)  block_elements16(r, i)
#define CACHED16(T, r, i)  PASTE(CACHED16_, T)(r, i)

#define HAS_ROW_SCALE_f16 0
#define HAS_ROW_SCALE_f32 0
#define HAS_ROW_SCALE_i8  1
#define HAS_ROW_SCALE_u4  0
#define HAS_ROW_SCALE(T)  PASTE(HAS_ROW_SCALE_, T)
#define ROW_SCALE(T, r)   (HAS_ROW_SCALE(T) ? *(__global const float *)(r).scales : 1.0f)
#define IS_BLOCKS_f16     0
#define IS_BLOCKS_f32     0
#define IS_BLOCKS_i8      0
#define IS_BLOCKS_u4      1
#define IS_BLOCKS(T)      PASTE(IS_BLOCKS_, T)
