/* SPDX-License-Identifier: Apache-2.0
 *
 *     out[r,h,:]    = softmax_j(scale q.k_j + mask) v_j           (sinks in the denominator)
 *
 * A unit is a tile of TILE_TOKENS tokens with the heads of one group; later tiles see more
 * keys, so work-items take units in turn. Nothing but `out` is written.
 */
#include "attention_tile.h"

__kernel void
attention_prompt_vec(ATTENTION_PARAMETERS, __global STORAGE(SRC) *out)
{
    const struct attention a = ATTENTION_ARGUMENTS;
    const uint units = tile_slots(&a, 1, TILE_TOKENS) * HEADS_KV;
    struct rows r;
    for (uint u = get_global_id(0); u < units; u += get_global_size(0)) {
        const struct place p = find_tile(&a, u / HEADS_KV, 1, TILE_TOKENS);
        if (p.n == 0)
            continue;
        r.s = p.s;
        begin_rows(&a, &r, u % HEADS_KV, p.first, p.n);
        attend_rows(&a, &r, tile_first(&a, &r), tile_end(&r));
        for (int i = 0; i < r.n; i++)
            finish_row(&a, &r, i, out);
    }
}
