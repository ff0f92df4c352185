/* SPDX-License-Identifier: Apache-2.0
 *
 * What the attention kernels share: operands, the paged cache, and which positions a query
 * sees. Token t of a sequence is at position past + t; S = past + T.
 *
 *   SRC      of q and the result: f16 or f32
 *   CACHE    f16, f32, or i8 with one scale per (page, head, position)
 *   D, DV    head dimensions of K and V
 *   HEADS_Q, HEADS_KV, PAGE_TOKENS, CAUSAL
 */
#include "types.h"

#ifndef SRC
#define SRC f32
#endif
#ifndef CACHE
#define CACHE f16
#endif
#ifndef CACHE_SCALED
#define CACHE_SCALED 0 /* 1: CACHE is i8 */
#endif
#ifndef D
#define D 64
#define DV 64
#define HEADS_Q 4
#define HEADS_KV 2
#define PAGE_TOKENS 16
#define CAUSAL 1
#endif

#define GROUP_HEADS (HEADS_Q / HEADS_KV) /* query heads that share one of K and V */

/* Operands by name; each kernel has its own result behind them. The explicit mask is added:
 * mask_bits 0 none, 16, 32; its batch and head strides are 0 where it is shared. */
#define ATTENTION_PARAMETERS                                                             \
    __global const STORAGE(SRC) *q, __global const STORAGE(CACHE) *k_cache,              \
        __global const STORAGE(CACHE) *v_cache, __global const float *k_scale,           \
        __global const float *v_scale, __global const int *table,                        \
        __global const uchar *key_mask, __global const uchar *mask,                      \
        __global const float *sinks, int tokens, long past, int max_pages,               \
        int key_mask_bytes, int mask_bits, long mask_batch, long mask_head, float scale, \
        float soft_cap, long window

/* What decode has behind them. One partition: rows go to `out`; else to `partial`, where
 * attention_combine finds them: { o[DV], m, l } of each row (b, t, h) and partition. Partition p
 * has the keys from first_key + p * partition_keys on. */
#define DECODE_PARAMETERS                                                                \
    __global STORAGE(SRC) * out, __global float *partial, int batch, long first_key,     \
        long partition_keys, int partitions, __global int *prepared

struct attention {
    __global const STORAGE(SRC) *q;
    __global const STORAGE(CACHE) *k_cache, *v_cache;
    __global const float *k_scale, *v_scale;
    __global const int *table;
    __global const uchar *key_mask, *mask;
    __global const float *sinks;
    int tokens;
    long past, keys;
    int max_pages, key_mask_bytes, mask_bits;
    long mask_batch, mask_head;
    float scale, soft_cap;
    long window;
};

#define ATTENTION_ARGUMENTS                                                              \
    {                                                                                    \
        q, k_cache, v_cache, k_scale, v_scale, table, key_mask, mask, sinks, tokens,     \
            past, past + tokens, max_pages, key_mask_bytes, mask_bits, mask_batch,       \
            mask_head, scale, soft_cap, window                                           \
    }

/* The row of the cache ([page][head][slot]) that holds position j; -1: no page does. */
static inline long
cache_row(const struct attention *a, int b, int head_kv, long j)
{
    const int page = a->table[(long)b * a->max_pages + j / PAGE_TOKENS];
    return page < 0 ? -1
                    : ((long)page * HEADS_KV + head_kv) * PAGE_TOKENS + j % PAGE_TOKENS;
}

static inline bool
is_padding(const struct attention *a, int b, long j)
{
    const long i = b * a->keys + j;
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

/* What the explicit mask adds to the score of (head, t, j). */
static inline float
mask_at(const struct attention *a, int b, int head, int t, long j)
{
    const long i = b * a->mask_batch + head * a->mask_head + t * a->keys + j;
    switch (a->mask_bits) {
    case 16:
        return vload_half(i, (__global const half *)a->mask);
    case 32:
        return ((__global const float *)a->mask)[i];
    default:
        return 0.0f;
    }
}

/* What a row's sum of weighted values is multiplied with in the end: 1 / l, its head's sink in it;
 * m is the maximum of its scores. A row that saw nothing gives 0. */
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

/* First position that token t sees, and the one behind the last; padding aside. */
static inline long
first_seen(const struct attention *a, int t)
{
    return a->window ? max(a->past + t - a->window + 1, 0L) : 0;
}

static inline long
end_seen(const struct attention *a, int t)
{
    return CAUSAL ? a->past + t + 1 : a->keys;
}
