/* SPDX-License-Identifier: Apache-2.0
 *
 * ROW_BLOCKS x SG rows of weights times TOKEN_TILES tiles of 16 tokens, by a sub-group on matrix
 * engines:
 *
 *     acc[r][b][t] = sum_k w[row r of the lane][k] x[token t of token block b][k]
 *
 * The weights are operand b of the products (matrix_mad.h). A lane reads the words of its own rows,
 * one of each row block, and decodes the numbers to halves. The tokens are operand a, in tiles of
 * steps (steps.h). Weights in blocks and weights of elements define the same functions:
 *
 *     take_row        assigns a row to the lane
 *     multiply_rows   adds the products of all columns
 *     product_factor  returns the factor of these sums
 *
 * With SHARES above 1 the sub-groups of a work-group have the same rows and different tiles, and
 * each decodes a part of the halves (shared_gemm.h).
 */
#include "matrix_mad.h"

#include "half_pairs.h"
#include "planes.h"
#include "steps.h"
#ifdef FORMAT0
#include "block_steps.h"
#else
#include "element_steps.h"
#endif

#include "step_tiles.h"

#ifdef FORMAT0
#include "block_gemm.h"
#else
#include "element_gemm.h"
#endif

#if SHARES > 1
#include "shared_gemm.h"

#define GEMM_GROUP                                                                       \
    __attribute__((reqd_work_group_size(SHARES * SG, 1, 1))) SUB_GROUP_SIZE
#else
#define GEMM_GROUP SUB_GROUP_SIZE
#define SHARED_HALVES(p)
#endif

/* Returns the index of a sub-group's rows, in units of ROW_BLOCKS * SG rows. */
static inline uint
row_index(void)
{
    return SHARES > 1 ? (uint)get_group_id(0) : sub_group_index();
}

/* acc += the products of all columns of the first `rows` row blocks and the sub-group's tiles. On
 * matrix engines the number of tiles is a constant, because loops over tiles are unrolled. */
static inline void
multiply_tiles(const uint format, const struct product *p, const uint rows, uint k_count,
               float8 acc[ROW_BLOCKS][TOKEN_BLOCKS])
{
#if !MATRIX_ENGINE
    multiply_rows(format, p, rows, p->x.each, k_count, acc);
#else
    if (p->x.each == TOKEN_TILES)
        multiply_rows(format, p, rows, TOKEN_TILES, k_count, acc);
    else if (SHARES == 1 || p->x.each == TOKEN_TILES / 2)
        multiply_rows(format, p, rows, TOKEN_TILES / 2, k_count, acc);
    else
        multiply_rows(format, p, rows, TOKEN_TILES / 4, k_count, acc);
#endif
}
