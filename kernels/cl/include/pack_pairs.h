/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of halves into tiles of pairs (pairs.h). A lane is a token: it reads its row in order, and
 * the sub-group writes whole rows of its token block.
 */
#include "pairs.h"
#include "planes.h"
#include "sub_group.h"

#define UNIT_STEPS 8 /* of a sub-group: 128 k */

/* Unit `unit` of a row, which stays zeros where the token `is_none`; `token` counts within the
 * tile. */
static inline void
pack_pairs(__global const ushort *row, bool is_none, uint unit, uint token, uint k_count,
           __global uint *tile)
{
    const uint end = min((unit + 1) * UNIT_STEPS, k_count / 16);
#pragma unroll 1
    for (uint step = unit * UNIT_STEPS; step < end; step++) {
#pragma unroll
        for (uint c = 0; c < 8; c++) {
            const uint k = pair_k(step, c, PLANES, GROUP);
            const uint pair = row[k] | (uint)row[k + PAIR_WORD_K(PLANES) / 2] << 16;
            tile[pair_word(step, c, token, SG)] = is_none ? 0 : pair;
        }
    }
}
