/* SPDX-License-Identifier: Apache-2.0
 *
 * ROW_BLOCKS x SG rows of weights times TOKEN_TILES tiles of 16 tokens, by a sub-group on matrix
 * engines:
 *
 *     acc[r][b][t] = sum_k w[row r of the lane][k] x[token t of token block b][k]
 *
 * The weights are operand b of the products (matrix_mad.h). A lane reads the words of its own rows,
 * one of each row block, and makes halves of the numbers. The tokens are operand a, in tiles of
 * steps (steps.h). Weights in blocks and of elements have the same functions:
 *
 *     take_row        makes a row the lane's
 *     multiply_rows   adds the products of all columns
 *     product_factor  what these are multiplied with in the end
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
