/* SPDX-License-Identifier: Apache-2.0
 *
 * A tile of a matrix product in a work-group: TILE_N rows of weights by TILE_T tokens. TILE_K
 * columns at a time are in local memory, weights with zero point and scale applied.
 *
 *     w[k][row], x[k][token]    columns padded by one against bank conflicts
 *
 * A work-item computes a REG_N x REG_T block in registers: rows ROW_LANES apart, tokens
 * TOKEN_LANES apart.
 */
#include "words.h"

#ifndef ITEMS
#define ITEMS 64 /* the launch's local size */
#endif
#ifndef TILE_T
#define TILE_T    16
#define ROW_LANES 16
#endif
#define TILE_N      64
#define TILE_K      32
#define TOKEN_LANES (ITEMS / ROW_LANES)
#define REG_N       (TILE_N / ROW_LANES)
#define REG_T       (TILE_T / TOKEN_LANES)
#define W_COLUMNS   (TILE_N + 1)
#define X_COLUMNS   (TILE_T + 1)
#if TILE_T % TOKEN_LANES || TILE_N % ROW_LANES
#error "the tile is not whole register blocks"
#endif

#define PIECE          (BLOCKS ? 16 : 8) /* neighbouring columns that a work-item loads at once */
#define PIECE_IS_WORDS (GROUP % PIECE == 0)

/* Loads PIECE weights of row n from column k on; 0 from column `end` on. */
static void
read_piece(const struct weight *w, ulong n, uint k, uint end, float *out)
{
#if BLOCKS
    if (k < end) {
        vstore16(weights_at(w, n, k), 0, out);
        return;
    }
#elif PIECE_IS_WORDS
    if (is_words(w, PIECE) && k < end) {
        const uint g = k / group_size(w);
        const float zero = weight_zero_point(w, n, g), factor = weight_scale(w, n, g);
        uint words[PIECE / WORD_VALUES];
        read_words(w, n, k, PIECE / WORD_VALUES, words);
        for (uint i = 0; i < PIECE; i++)
            out[i] =
                (WORD_VALUE(words[i / WORD_VALUES], i % WORD_VALUES) - zero) * factor;
        return;
    }
#endif
    for (uint i = 0; i < PIECE; i++)
        out[i] = k + i < end ? weight_at(w, n, k + i) : 0.0f;
}

/* Copies n stored rows from `row` on, columns from `first` on, to the tile's rows from `to` on;
 * rows from `end` on are 0. */
static void
stage_weights(__local float *to, uint n, const struct weight *w, ulong row, ulong end,
              uint first)
{
    for (uint i = get_local_id(0); i < n * (TILE_K / PIECE); i += ITEMS) {
        const uint r = i / (TILE_K / PIECE), k = i % (TILE_K / PIECE) * PIECE;
        const ulong from = row + r;
        float piece[PIECE];
        read_piece(w, from, first + k, from < end ? w->k_count : 0, piece);
        for (uint j = 0; j < PIECE; j++)
            to[(k + j) * W_COLUMNS + r] = piece[j];
    }
}

static void
clear_block(float sum[REG_N][REG_T])
{
    for (uint i = 0; i < REG_N; i++)
        for (uint j = 0; j < REG_T; j++)
            sum[i][j] = 0.0f;
}

/* Row and token in the tile of element (i, j) of this work-item's block. */
static inline uint
block_row(uint i)
{
    return get_local_id(0) % ROW_LANES + i * ROW_LANES;
}

static inline uint
block_token(uint j)
{
    return get_local_id(0) / ROW_LANES + j * TOKEN_LANES;
}

static void
multiply_tile(__local const float *w, __local const float *x, float sum[REG_N][REG_T])
{
    for (uint k = 0; k < TILE_K; k++) {
        float a[REG_N], b[REG_T];
        for (uint i = 0; i < REG_N; i++)
            a[i] = w[k * W_COLUMNS + block_row(i)];
        for (uint j = 0; j < REG_T; j++)
            b[j] = x[k * X_COLUMNS + block_token(j)];
        for (uint i = 0; i < REG_N; i++)
            for (uint j = 0; j < REG_T; j++)
                sum[i][j] += a[i] * b[j];
    }
}
