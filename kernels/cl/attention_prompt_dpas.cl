/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of prompts on matrix engines (matrix_attention.h). Global size: SG lanes for each part
 * of the values of a tile of SG rows, times the heads of K and V, which are outermost.
 */
#define ROW_BLOCKS (SG / 8) /* as many as fit into registers */
#define KEYS       32
#include "matrix_attention.h"

SUB_GROUP_SIZE __kernel void
attention_prompt_dpas(ATTENTION_PARAMETERS, __global STORAGE(SRC) * out)
{
    const struct attention a = ATTENTION_ARGUMENTS;
    LOCAL_QUERIES;
    struct query r;
    struct sums sums;
    if (!find_rows(&a, sub_group_index(), queries, &r))
        return;
    clear_sums(&sums);
    attend(&a, &r, &sums);
    finish_rows(&a, &r, &sums, out);
}
