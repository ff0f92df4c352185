/* SPDX-License-Identifier: Apache-2.0
 *
 * ROW_BLOCKS x SG rows of weights in blocks times TOKEN_TILES tiles of tokens, on matrix engines:
 *
 *     acc[r][b][t] = sum_k w[row of lane][k] x[token t of 8 of token block b][k]
 *
 * The weights are b of the products (matrix_mad.h), a row a lane, which reads its words as the file
 * has them and makes halves of the numbers without rounding (block_steps.h). The tokens are a, in
 * tiles of steps (steps.h). Factors come in afterwards, in float, a span of columns at a time; what
 * offsets and minimums add is taken off before, by products with the sums of x.
 */
#ifndef FORMAT0
#define FORMAT0 q4_0
#define FORMAT_q4_0
#endif
#include "matrix_mad.h"
#include "weights.h"

#include "steps.h"

#include "block_steps.h"

#ifndef TOKEN_TILES
#define TOKEN_TILES 4 /* at most */
#endif
#ifndef ROW_BLOCKS
#define ROW_BLOCKS 2
#endif
#define TOKEN_BLOCKS (2 * TOKEN_TILES)

/* The rows of the lanes, and their tiles. */
struct product {
    const struct weight *w[ROW_BLOCKS];
    uint place[ROW_BLOCKS]; /* where the row begins: in units of its format */
    __global const ushort *x;
    uint tile[TOKEN_TILES]; /* where they begin, in halves: of 32 bits, from the kernel's argument,
                             * so that compilers need no addresses of 64 bits */
    uint tiles;             /* that are there              */
};

/* The step at place `at` of both token blocks of a tile. */
static inline void
load_step(__global const ushort *x, uint at, matrix_a a[2])
{
#if SG == 8
    __global const uint *words =
        (__global const uint *)x + (at / 2 + get_sub_group_local_id() * 8);
    a[0] = as_int8((uint8)(vload4(0, words), vload4(1, words)));
    a[1] = as_int8((uint8)(vload4(16, words), vload4(17, words)));
#elif MATRIX_ENGINE
    const ushort16 both = intel_sub_group_block_read_us16(x + at);
    a[0] = as_short8(both.lo);
    a[1] = as_short8(both.hi);
#else
    ushort rows[16];
    for (uint i = 0; i < 16; i++)
        rows[i] = x[at + i * 16 + get_sub_group_local_id()];
    a[0] = as_short8(vload8(0, rows));
    a[1] = as_short8(vload8(1, rows));
#endif
}

/* The place of row `row` of a weight. */
static inline uint
row_place(const uint format, const struct weight *w, ulong row)
{
#define ROW_PLACE(format)                                                                \
    (uint)((row * (w->view.x / PASTE(COLUMNS_, format)) +                                \
            w->view.y / PASTE(COLUMNS_, format)) *                                       \
           PASTE(BYTES_, format) / PASTE(STEP_PLACE_, format))
    return BY_FORMAT(format, ROW_PLACE);
}

/* Row block r takes row `row` of an expert for each lane. */
static inline void
take_row(struct product *p, const uint r, const struct weight *w, ulong expert, uint row)
{
    p->w[r] = w;
    p->place[r] = row_place(w->format, w, stored_row(w, expert, row));
}

/* The tiles from `first` on; the last is `last`, which those behind it repeat. */
static inline void
take_tiles(struct product *p, __global const ushort *x, uint first, uint last,
           uint k_count)
{
    p->x = x;
    p->tiles = min(last + 1 - first, (uint)TOKEN_TILES);
#pragma unroll
    for (uint i = 0; i < TOKEN_TILES; i++)
        p->tile[i] = min(first + i, last) * tile_halves(k_count);
}

/* Eight tokens' results of a row, which are `step` apart. */
static inline void
store_tokens(float8 v, __global float *y, uint step)
{
    float of[8];
    vstore8(v, 0, of);
#pragma unroll
    for (uint t = 0; t < 8; t++)
        y[(ulong)t * step] = of[t];
}

static inline void
clear(float8 acc[ROW_BLOCKS][TOKEN_BLOCKS])
{
#pragma unroll
    for (uint i = 0; i < ROW_BLOCKS * TOKEN_BLOCKS; i++)
        acc[i / TOKEN_BLOCKS][i % TOKEN_BLOCKS] = 0.0f;
}

/* What is multiplied at once. */
struct turn {
    uint super, span;
    int8 b[ROW_BLOCKS][MOST_STEPS];
    float factor[ROW_BLOCKS];
};

/* acc += the products of `steps` steps of weights with tokens; with the sums of the super-block
 * where `is_sums`. */
static inline void
add_steps(const uint format, const struct product *p, const uint rows, const uint tiles,
          const struct turn *turn, const bool is_sums,
          float8 acc[ROW_BLOCKS][TOKEN_BLOCKS])
{
    const uint steps = is_sums ? 1 : BY_FORMAT(format, SPAN_K) / 16;
    UNROLL_PRODUCTS
    for (uint i = 0; i < tiles; i++) {
        float8 c[ROW_BLOCKS][2];
#pragma unroll
        for (uint r = 0; r < rows; r++)
            c[r][0] = c[r][1] = 0.0f;
        UNROLL_PRODUCTS
        for (uint s = 0; s < steps; s++) {
            const uint step = is_sums ? SUM_STEP : step_of(format, turn->span, s);
            matrix_a a[2];
            load_step(p->x, p->tile[i] + step_place(turn->super, step), a);
            UNROLL_PRODUCTS
            for (uint r = 0; r < 2 * rows; r++)
                c[r / 2][r % 2] = matrix_mad(a[r % 2], turn->b[r / 2][s], c[r / 2][r % 2]);
        }
#pragma unroll
        for (uint r = 0; r < rows; r++) {
            acc[r][2 * i] += c[r][0] * turn->factor[r];
            acc[r][2 * i + 1] += c[r][1] * turn->factor[r];
        }
    }
}

static inline void
add_span(const uint format, const struct product *p, const uint rows, const uint tiles,
         struct turn *turn, float8 acc[ROW_BLOCKS][TOKEN_BLOCKS])
{
#pragma unroll
    for (uint r = 0; r < rows; r++)
        turn->factor[r] = make_span(format, p->w[r]->data,
                                    super_place(format, p->place[r], turn->super),
                                    turn->span, turn->b[r]);
    add_steps(format, p, rows, tiles, turn, false, acc);
}

static inline void
add_sums(const uint format, const struct product *p, const uint rows, const uint tiles,
         struct turn *turn, uint blocks, float8 acc[ROW_BLOCKS][TOKEN_BLOCKS])
{
#pragma unroll
    for (uint i = 0; i < BY_FORMAT(format, SUMS); i++) {
#pragma unroll
        for (uint r = 0; r < rows; r++)
            turn->factor[r] = make_sums(format, p->w[r]->data,
                                        super_place(format, p->place[r], turn->super),
                                        blocks, i, turn->b[r]);
        add_steps(format, p, rows, tiles, turn, true, acc);
    }
}

/* acc += all columns of the first `rows` row blocks, which have one format, and of `tiles` tiles.
 * In one loop where there are no sums: of two, one in the other, compilers move acc. */
static inline void
multiply_blocks(const uint format, const struct product *p, const uint rows,
                const uint tiles, uint k_count, float8 acc[ROW_BLOCKS][TOKEN_BLOCKS])
{
    const uint span_k = BY_FORMAT(format, SPAN_K), spans = SUPER_K / span_k;
    struct turn turn;
    if (!BY_FORMAT(format, SUMS)) {
#pragma unroll 1
        for (uint i = 0; i < k_count / span_k; i++) {
            turn.super = i / spans;
            turn.span = i % spans;
            add_span(format, p, rows, tiles, &turn, acc);
        }
        return;
    }
#pragma unroll 1
    for (turn.super = 0; turn.super < supers_of(k_count); turn.super++) {
        const uint k = min(k_count - turn.super * SUPER_K, (uint)SUPER_K);
        add_sums(format, p, rows, tiles, &turn, k / 32, acc);
        turn.span = 0;
#pragma unroll 1
        do {
            add_span(format, p, rows, tiles, &turn, acc);
        } while (++turn.span < k / span_k);
    }
}
