/* SPDX-License-Identifier: Apache-2.0
 *
 * Does what choose_take_ref does; one work-group of ITEMS for each text. A threshold is found by
 * histograms of 11 bits of the keys, from the highest bits on: each histogram divides the bin in
 * which the one before it crossed the limit. Most tokens are in no bin: their keys are below the
 * k-th largest of the parts' best, or their weights are so small that top_p leaves out every token
 * of such a weight.
 *
 * Barriers are in do-while loops whose condition is equal in the whole work-group. PoCL 6
 * miscompiles barriers within an if, so options are defines: 1 if some text of the launch has the
 * option. Texts without it, and texts whose logits are no distribution, run the same code.
 */
#include "choose.h"

#ifndef DRAWS
#define DRAWS 1
#endif
#ifndef TOP_K
#define TOP_K DRAWS /* 1: some text has top_k */
#endif
#ifndef TOP_P
#define TOP_P DRAWS /* 1: some text has a top_p below 1 */
#endif

#ifndef ITEMS
#define ITEMS 256 /* the launch's local size */
#endif

enum { DIGIT = 11, BINS = 1 << DIGIT, BINS_EACH = BINS / ITEMS, KEY_BITS = 64 };

/* The same as in choose_take_ref. */
struct row {
    __global const float *logits;
    uint n;
    float largest;
    struct state s;
    ulong floor, least;
};

struct bins {
    uint low[BINS], high[BINS]; /* halves of a bin's sum */
    uint tokens[BINS];
    ulong part[ITEMS];
    /* key of the bin that crosses the limit; what its tokens must still add up to */
    ulong prefix, left;
    uint is_done;
};

static inline bool
stays(const struct row *r, uint i, ulong *key, ulong *weight)
{
    const float logit = r->logits[i];
    *key = key_of(logit, i);
    if (*key == 0 || *key < r->floor)
        return false;
    *weight = weight_of(logit, r->largest, &r->s);
    return *weight >= r->least;
}

/* Returns the sum of `mine` over the work-group. */
static ulong
group_total(__local struct bins *b, ulong mine)
{
    const uint me = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    b->part[me] = mine;
    for (uint left = ITEMS / 2; left > 0; left /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (me < left)
            b->part[me] += b->part[me + left];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return b->part[0];
}

static ulong
sum_of_weights(const struct row *r, __local struct bins *b)
{
    ulong sum = 0, key, weight;
    for (uint i = get_local_id(0); i < r->n; i += ITEMS)
        if (stays(r, i, &key, &weight))
            sum += weight;
    return group_total(b, sum);
}

/* Adds 64 bits by two atomic additions; an addition of low words that wraps around carries. */
static inline void
add_to_bin(__local struct bins *b, uint bin, ulong weight)
{
    const uint low = (uint)weight;
    const uint carry = atomic_add(&b->low[bin], low) > UINT_MAX - low;
    const uint high = (uint)(weight >> 32) + carry;
    if (high)
        atomic_add(&b->high[bin], high);
    atomic_inc(&b->tokens[bin]);
}

static inline ulong
sum_of_bin(const __local struct bins *b, uint bin)
{
    return (ulong)b->high[bin] << 32 | b->low[bin];
}

/* Finds the bin in which the sum, from the largest bin down, reaches `left`. One work-item does it;
 * part[p] has the sum of BINS_EACH bins. */
static void
find_crossing(__local struct bins *b, uint shift)
{
    int p = ITEMS - 1;
    for (; p > 0 && b->part[p] < b->left; p--)
        b->left -= b->part[p];
    int bin = p * BINS_EACH + BINS_EACH - 1;
    for (; bin > p * BINS_EACH && sum_of_bin(b, bin) < b->left; bin--)
        b->left -= sum_of_bin(b, bin);
    b->prefix |= (ulong)bin << shift;
    b->is_done = shift == 0 || sum_of_bin(b, bin) <= b->left || b->tokens[bin] == 1;
}

/* Returns the smallest key among the fewest best tokens that add up to `enough`, or a key between
 * it and the next smaller key; 0 if all tokens do not add up to it. */
static ulong
threshold(const struct row *r, __local struct bins *b, ulong enough, bool by_weight)
{
    const uint me = get_local_id(0);
    uint shift = KEY_BITS;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (me == 0) {
        b->prefix = 0;
        b->left = enough;
    }
    do {
        const uint digit = min(shift, (uint)DIGIT);
        shift -= digit;
        for (uint bin = me; bin < BINS; bin += ITEMS)
            b->low[bin] = b->high[bin] = b->tokens[bin] = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        const ulong prefix = b->prefix;
        ulong key, weight;
        for (uint i = me; i < r->n; i += ITEMS) {
            if (!stays(r, i, &key, &weight))
                continue;
            const ulong rest = (key ^ prefix) >> shift;
            if (rest >> digit == 0) /* key starts with the prefix, whose current digit is 0 */
                add_to_bin(b, (uint)rest, by_weight ? weight : 1);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        ulong mine = 0;
        for (uint k = 0; k < BINS_EACH; k++)
            mine += sum_of_bin(b, me * BINS_EACH + k);
        b->part[me] = mine;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (me == 0)
            find_crossing(b, shift);
        barrier(CLK_LOCAL_MEM_FENCE);
    } while (!b->is_done);
    return b->prefix;
}

/* Returns the k-th largest of the parts' best keys, 0 if there are fewer parts: if it is not 0, at
 * least k tokens have keys as large. */
static ulong
bound_of_best(__global const struct part *parts, uint n_parts, uint k,
              __local struct bins *b)
{
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0)
        b->prefix = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint p = get_local_id(0); p < n_parts && k <= n_parts; p += ITEMS) {
        uint above = 0;
        for (uint q = 0; q < n_parts; q++)
            above += parts[q].key > parts[p].key;
        if (above == k - 1)
            b->prefix = parts[p].key;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return b->prefix;
}

/* Draws a token by weight: tokens are in order of ids, each work-item has a range of them. */
static uint
draw_by_weight(const struct row *r, __local struct bins *b)
{
    const uint me = get_local_id(0), each = (r->n + ITEMS - 1) / ITEMS;
    const uint first = min(me * each, r->n), end = min(first + each, r->n);
    ulong sum = 0, before = 0, all = 0, key, weight;
    for (uint i = first; i < end; i++)
        if (stays(r, i, &key, &weight))
            sum += weight;
    barrier(CLK_LOCAL_MEM_FENCE);
    b->part[me] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint p = 0; p < ITEMS; p++) {
        before += p < me ? b->part[p] : 0;
        all += b->part[p];
    }
    const ulong point = mul_hi(random_bits(r->s.seed, r->s.n), all);
    if (point >= before && point - before < sum) {
        ulong left = point - before;
        uint i = first;
        for (;; i++) {
            const bool stays_in = stays(r, i, &key, &weight);
            if (stays_in && left < weight)
                break;
            left -= stays_in ? weight : 0;
        }
        b->prefix = i;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return (uint)b->prefix;
}

static uint
draw(struct row *r, __global const struct part *parts, uint n_parts,
     __local struct bins *b)
{
#if TOP_K
    const uint k = r->s.top_k ? r->s.top_k : r->n;
    r->floor = bound_of_best(parts, n_parts, k, b);
    r->floor = max(r->floor, threshold(r, b, k, false));
#endif
#if TOP_P
    const ulong sum = sum_of_weights(r, b), enough = enough_of(sum, r->s.top_p);
    r->least = max(r->s.least, enough < sum ? (sum - enough) / r->n + 1 : 1);
    r->floor = max(r->floor, threshold(r, b, enough, true));
#endif
    r->least = max(r->least, r->s.least);
    return draw_by_weight(r, b);
}

__kernel void
choose_take_gen(__global const float *logits, __global const struct part *parts,
                __global struct state *state, __global struct seen *seen,
                __global int *chosen, __global STORAGE(IDS) *ids,
                __global STORAGE(POSITIONS) *position, __global int *past, uint n,
                uint seen_stride)
{
    __local struct bins b;
    const uint me = get_local_id(0), text = get_group_id(0), n_parts = parts_of(n);
    ulong best = 0, unsound = 0;
    logits += (ulong)text * n;
    parts += text * n_parts;
    seen += (ulong)text * seen_stride;
    state += text;
    for (uint p = me; p < n_parts; p += ITEMS) {
        best = max(best, parts[p].key);
        unsound |= parts[p].unsound;
    }
    b.part[me] = best;
    b.low[me] = unsound != 0;
    for (uint left = ITEMS / 2; left > 0; left /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (me < left) {
            b.part[me] = max(b.part[me], b.part[me + left]);
            b.low[me] |= b.low[me + left];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    best = b.part[0];
    const bool is_sound = best && !b.low[0];
    uint id = ~(uint)best;
#if DRAWS
    struct row r = {logits, n, best ? logits[id] : 0.0f, *state, 0, 0};
    const uint drawn = draw(&r, parts, n_parts, &b);
    id = r.s.draws ? drawn : id;
#endif
    if (me == 0)
        put_choice(text, is_sound ? (int)id : -1, state, seen, n, chosen, ids, position, past);
}
