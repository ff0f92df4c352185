/* SPDX-License-Identifier: Apache-2.0
 *
 * What the attention kernels share: operands, which rows belong to which sequence, and which
 * positions a query attends to. A launch computes the sequences [first_sequence, first_sequence +
 * sequences).
 *
 *   SRC      element type of q and of the result: f16 or f32
 *   HEADS_Q, CAUSAL
 *   CACHE, D, DV, HEADS_KV, PAGE_TOKENS  as in attention_cache.h
 */
#include "attention_cache.h"

#ifndef SRC
#define SRC f32
#endif

#define GROUP_HEADS (HEADS_Q / HEADS_KV) /* query heads that share a head of K and V */

/* Parameters of all attention kernels; each kernel appends its own results. A row of the key mask
 * has key_mask_stride elements. The explicit mask is added to scores: mask_bits is the size of its
 * elements (16, 32; 0: no mask), mask_batch and mask_head are its strides from sequence to sequence
 * and from head to head, 0 where they share it. */
#define ATTENTION_PARAMETERS                                                             \
    __global const STORAGE(SRC) * q, CACHE_PARAMETERS, int first_sequence,               \
        int sequences, __global const uchar *key_mask, __global const uchar *mask,       \
        __global const float *sinks, int key_mask_bytes, long key_mask_stride,           \
        int mask_bits, long mask_batch, long mask_head, float scale, float soft_cap,     \
        int window

/* Parameters that decode appends. With one partition, results go to `out`; else to `partial`, for
 * attention_combine: { o[DV], m, l } for each (row, head) and partition. Partition p of a sequence
 * has partition_keys keys, counted from the first key that its first token attends to. A partition
 * that begins behind the last key is empty: m is -infinity, l is 0. */
#define DECODE_PARAMETERS                                                                \
    __global STORAGE(SRC) * out, __global float *partial, int partition_keys,            \
        int partitions, __global int *prepared

struct attention {
    __global const STORAGE(SRC) *q;
    struct cache cache;
    int first_sequence, sequences;
    __global const uchar *key_mask, *mask;
    __global const float *sinks;
    int key_mask_bytes;
    long key_mask_stride;
    int mask_bits;
    long mask_batch, mask_head;
    float scale, soft_cap;
    int window;
};

#define ATTENTION_ARGUMENTS                                                              \
    {                                                                                    \
        q, CACHE_ARGUMENTS, first_sequence, sequences, key_mask, mask, sinks,            \
            key_mask_bytes, key_mask_stride, mask_bits, mask_batch, mask_head, scale,    \
            soft_cap, window                                                             \
    }

/* ---- tiles -------------------------------------------------------------------------- */

/* Tiles of m rows; a token has `per` rows. All tiles of the launch are numbered without a table:
 * those of a sequence begin at floor((per * tokens before it + (m - 1) * sequences before it) / m),
 * so that each sequence has at least as many tiles as it needs. Its last tile may be empty. */
static inline uint
tile_slots(const struct attention *a, uint per, uint m)
{
    const int rows = a->cache.subsequence_begins[a->first_sequence + a->sequences] -
                     a->cache.subsequence_begins[a->first_sequence];
    return ((uint)rows * per + (uint)a->sequences * (m - 1)) / m;
}

struct place {
    struct sequence s;
    /* the tile's rows of the sequence's tokens * per: from `first` on, n of them, 0 to m */
    int first, n;
};

static inline struct place
find_tile(const struct attention *a, uint slot, uint per, uint m)
{
    const struct cache *c = &a->cache;
    const int first = a->first_sequence,
              index = find_sequence(c, first, a->sequences, per, m - 1, slot * m + m - 1);
    struct place p;
    p.s = sequence_at(c, index);
    const uint rows = (uint)(p.s.begin - c->subsequence_begins[first]);
    const uint before = (rows * per + (uint)(index - first) * (m - 1)) / m;
    p.first = (int)((slot - before) * m);
    p.n = clamp(p.s.tokens * (int)per - p.first, 0, (int)m);
    return p;
}

/* ---- what is seen ------------------------------------------------------------------- */

static inline bool
is_padding(const struct attention *a, const struct sequence *s, int j)
{
    const long i = s->index * a->key_mask_stride + j;
    switch (a->key_mask_bytes) {
    case 1:
        return a->key_mask[i] == 0;
    case 4:
        return ((__global const int *)a->key_mask)[i] == 0;
    case 8:
        return ((__global const long *)a->key_mask)[i] == 0;
    default:
        return false;
    }
}

/* Returns what the explicit mask adds to the score of (head, token t, key j). */
static inline float
mask_at(const struct attention *a, const struct sequence *s, int head, int t, int j)
{
    const long i = s->index * a->mask_batch + head * a->mask_head + (long)t * s->keys + j;
    switch (a->mask_bits) {
    case 16:
        return vload_half(i, (__global const half *)a->mask);
    case 32:
        return ((__global const float *)a->mask)[i];
    default:
        return 0.0f;
    }
}

/* Returns the factor of a row's sum of weighted values: 1 / l, after the head's sink is included in
 * l. m is the maximum of the row's scores. 0 for a row that attends to no key. */
static inline float
row_norm(const struct attention *a, int head, float m, float l)
{
    float keep = 1.0f;
    if (a->sinks) {
        const float sink = a->sinks[head], most = fmax(m, sink);
        keep = exp(m - most);
        l = l * keep + exp(sink - most);
    }
    return l > 0.0f ? keep / l : 0.0f;
}

/* The first position that token t attends to, and the one behind the last; padding is not
 * considered. */
static inline int
first_seen(const struct attention *a, const struct sequence *s, int t)
{
    return a->window ? max(s->past + t - a->window + 1, 0) : 0;
}

static inline int
end_seen(const struct sequence *s, int t)
{
    return CAUSAL ? s->past + t + 1 : s->keys;
}
