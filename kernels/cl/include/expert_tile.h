/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm_tile.h on the tiles that moe_gather and moe_gemm_gate_up write: 16 tokens of one expert
 * in lanes, k in plane order (planes.h).
 */
#include "gemm_tile.h"

/* As in planes.h: the position of column k in plane order, if a 32-bit word has `planes` values. */
#define PLANES_OF(values) ((values) == 2 ? 1 : (values))
#define PLANES            PLANES_OF(WORD_VALUES)

static inline uint
plane_position(uint k, uint planes)
{
    const uint in_block = k % (16 * planes);
    if (planes == 1)
        return k;
    return k - in_block + in_block % planes * 16 + in_block / planes;
}

/* Returns the floats of a lane of a tile: k_count columns, rounded up to whole blocks of planes. */
static inline uint
padded_columns(uint k_count, uint planes)
{
    return (k_count + 16 * planes - 1) / (16 * planes) * (16 * planes);
}

static void
stage_lanes(__local float *to, __global const float *tile, uint first, uint k_count)
{
    for (uint i = get_local_id(0); i < 16 * TILE_K; i += ITEMS) {
        const uint lane = i % 16, k = i / 16;
        to[k * X_COLUMNS + lane] =
            first + k < k_count ? tile[plane_position(first + k, PLANES) * 16 + lane]
                                : 0.0f;
    }
}
