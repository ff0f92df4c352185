/* SPDX-License-Identifier: Apache-2.0
 *
 * Attends to one partition of the keys for the few tokens of a chunk; finishes the rows if there is
 * only one partition (DECODE_PARAMETERS). A unit is a partition for all heads of one group and all
 * tokens of a sequence (at most TILE_TOKENS): the keys are read once. prepared (NULL: unwanted):
 * also writes prepared rows (prepared.h); the k of a group are whole blocks and groups of them.
 */
#include "attention_tile.h"
#include "prepared.h"
#include "span.h"

static void
write_partial(struct rows *r, int i, __global float *to)
{
    const float l = end_row(r, i);
    int d = 0;
    for (; d + 16 <= DV; d += 16)
        vstore16(vload16(0, r->o + i * DV_PAD + d), 0, to + d);
    for (; d < DV; d++)
        to[d] = r->o[i * DV_PAD + d];
    to[DV] = r->m[i];
    to[DV + 1] = l;
}

/* Writes the part of the prepared rows that belongs to the group's heads. */
static void
prepare_group(const struct rows *r, __global const STORAGE(SRC) * out,
              __global int *prepared)
{
    const uint k_count = HEADS_Q * DV, first = r->head_kv * GROUP_HEADS * DV;
    for (int t = 0; t < r->s.tokens; t++) {
        const ulong row = (ulong)r->s.begin + t;
        PASTE(prepare_part_, SRC)(out + row * k_count, k_count, first,
                                  first + GROUP_HEADS * DV,
                                  prepared + row * prepared_words(k_count, FORM), FORM);
    }
}

__kernel void
attention_decode_vec(ATTENTION_PARAMETERS, DECODE_PARAMETERS)
{
    const struct attention a = ATTENTION_ARGUMENTS;
    const ulong units = (ulong)sequences * HEADS_KV * partitions;
    struct rows r;
    for (ulong u = span_begin(units); u < span_end(units); u++) {
        const int p = u % partitions, head_kv = u / partitions % HEADS_KV;
        r.s = sequence_at(&a.cache, first_sequence + (int)(u / partitions / HEADS_KV));
        if (r.s.tokens == 0)
            continue;
        begin_rows(&a, &r, head_kv, 0, r.s.tokens);
        const int seen = tile_first(&a, &r), first = seen + p * partition_keys;
        attend_rows(&a, &r, first, min(first + partition_keys, tile_end(&r)));
        for (int i = 0; i < r.n; i++) {
            if (partitions == 1)
                finish_row(&a, &r, i, out);
            else
                write_partial(&r, i,
                              partial + (row_index(&r, i) * partitions + p) * (DV + 2));
        }
        if (prepared && partitions == 1)
            prepare_group(&r, out, prepared);
    }
}
