/* SPDX-License-Identifier: Apache-2.0
 *
 *     out[b,t,h,:] = softmax_j(scale q.k_j + mask) v_j           (sinks in the denominator)
 *
 * A unit is a tile of TILE_TOKENS tokens with the heads of one group; later tiles see more
 * keys, so that the work-items take units in turn. Nothing but `out` is written.
 */
#include "attention_tile.h"

__kernel void
attention_prompt_vec(ATTENTION_PARAMETERS, __global STORAGE(SRC) *out, int batch)
{
    const struct attention a = ATTENTION_ARGUMENTS;
    const int tiles = (tokens + TILE_TOKENS - 1) / TILE_TOKENS;
    const ulong units = (ulong)batch * HEADS_KV * tiles;
    struct rows r;
    for (ulong u = get_global_id(0); u < units; u += get_global_size(0)) {
        const int tile = u / HEADS_KV % tiles;
        begin_rows(&a, &r, u / HEADS_KV / tiles, u % HEADS_KV, tile * TILE_TOKENS);
        attend_rows(&a, &r, tile_first(&a, &r), tile_end(&a, &r));
        for (int i = 0; i < r.n; i++)
            finish_row(&a, &r, i, out);
    }
}
