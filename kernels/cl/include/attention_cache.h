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
 *     K [HEADS_KV][PAGE_TOKENS][D]    V [HEADS_KV][PAGE_TOKENS][DV]    and for i8 the scales of
 *     the rows of K, of V, f32 [HEADS_KV][PAGE_TOKENS]                 each 64-byte aligned
 *
 * Slabs that are not there have the address of one that is: any of them may be read.
 *
 *   CACHE         f16, f32, or i8 with scales
 *   D, DV         head dimensions of K and V
 *   HEADS_KV, PAGE_TOKENS
 */
#include "types.h"

#ifndef CACHE
#define CACHE f16
#endif
#ifndef CACHE_SCALED
#define CACHE_SCALED 0 /* 1: CACHE is i8 */
#endif
#ifndef D
#define D           64
#define DV          64
#define HEADS_Q     4
#define HEADS_KV    2
#define PAGE_TOKENS 16
#define CAUSAL      1
#endif

#define CACHE_BYTES_f16 2
#define CACHE_BYTES_f32 4
#define CACHE_BYTES_i8  1
#define ALIGNED_64(n)   (((ulong)(n) + 63) / 64 * 64)
#define PAGE_ROWS       ((ulong)HEADS_KV * PAGE_TOKENS) /* of K; as many of V */
#define VALUES_AT       ALIGNED_64(PAGE_ROWS * D * PASTE(CACHE_BYTES_, CACHE))
#define SCALES_BYTES    ALIGNED_64(PAGE_ROWS * 4 * CACHE_SCALED)
#define SCALES_AT       (VALUES_AT + ALIGNED_64(PAGE_ROWS * DV * PASTE(CACHE_BYTES_, CACHE)))
#define PAGE_BYTES      (SCALES_AT + 2 * SCALES_BYTES)

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

static inline __global STORAGE(CACHE) *
key_row(__global uchar *page, uint row)
{
    return (__global STORAGE(CACHE) *)page + (ulong)row * D;
}

static inline __global STORAGE(CACHE) *
value_row(__global uchar *page, uint row)
{
    return (__global STORAGE(CACHE) *)(page + VALUES_AT) + (ulong)row * DV;
}

/* Of i8 caches. */
static inline __global float *
key_scale(__global uchar *page, uint row)
{
    return (__global float *)(page + SCALES_AT) + row;
}

static inline __global float *
value_scale(__global uchar *page, uint row)
{
    return (__global float *)(page + SCALES_AT + SCALES_BYTES) + row;
}
