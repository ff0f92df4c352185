/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[t][n] = sum_k x[t][k] w[n][k] (+ bias[n]) (+ addend[t][n])
 *
 * Few tokens; up to three weights, or a gated linear unit (segments.h). A sub-group computes ROWS
 * neighbouring n of one token, K across its lanes; the weights are read once for each token. Global
 * size {blocks of ROWS rows of all segments * SG, T}.
 */
#include "segments.h"
#include "sub_group_gemv.h"

SUB_GROUP_SIZE __kernel void
linear_gemv_sg(ALL_SEGMENT_PARAMETERS, __global const STORAGE(SRC) * x, OTHER_PARAMETERS,
               uint k_count)
{
    uint block = sub_group_index();
    struct segment s;
    FIND_SEGMENT(s, block, ROWS);
    const struct segment up = UP_SEGMENT;
    const uint first = block * ROWS, n = first + get_sub_group_local_id();
    const ulong t = get_global_id(1);
    float sum[ROWS];
    if (first >= s.n_count)
        return;
    x += t * k_count;
    rows_dot(&s.w, stored_row(&s.w, 0, first), stored_row(&s.w, 0, s.n_count - 1), x, sum);
    float total = lane_total(sum), up_total = 0.0f;
    if (PRODUCTS == 2) {
        rows_dot(&up.w, stored_row(&up.w, 0, first), stored_row(&up.w, 0, s.n_count - 1),
                 x, sum);
        up_total = lane_total(sum);
    }
    if (get_sub_group_local_id() < ROWS && n < s.n_count)
        store_results(&s, &up, t, n, 1, total, up_total);
}
