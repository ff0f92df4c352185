/* SPDX-License-Identifier: Apache-2.0
 *
 * ROW_BLOCKS x SG rows of weights in blocks times TOKEN_TILES tiles of 16 tokens, by a sub-group on
 * matrix engines:
 *
 *     acc[r][b][t] = sum_k w[row r of the lane][k] x[token t of token block b][k]
 *
 * The weights are operand b of the products (matrix_mad.h). A lane reads the words of its own rows,
 * one of each row block, and makes halves of the numbers (block_steps.h). The tokens are operand a,
 * in tiles of steps (steps.h); a token block is half a tile. The products of a span of columns are
 * summed before they are multiplied by the span's factor, in float. Minimums are
 * taken off by products with the sums of x, before the spans of each super-block.
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
#define TOKEN_TILES 4 /* tiles of 16 tokens of a sub-group, at most */
#endif
#ifndef ROW_BLOCKS
#define ROW_BLOCKS 2 /* rows of a lane */
#endif
#define TOKEN_BLOCKS (2 * TOKEN_TILES)

/* Where a tile begins, in halves from the kernel's argument x. The chips with sub-groups of 8 lanes
 * address memory by 32 bits and have no buffers of 8 GiB. */
#if SG == 8
typedef uint tile_place;
#else
typedef ulong tile_place;
#endif

/* The rows of a lane, and the tiles that they are multiplied by. */
struct product {
    const struct weight *w[ROW_BLOCKS];
    uint place[ROW_BLOCKS]; /* where the row begins, in units of STEP_PLACE_<format> */
    __global const ushort *x;
    tile_place tile[TOKEN_TILES];
    uint tiles; /* that exist, at most TOKEN_TILES */
};

/* Token block `block` of the step that is `steps` steps behind `place`. Block reads (SG 16) take
 * addresses of 64 bits, to which the message adds constants at no cost. */
static inline matrix_a
load_step(const struct product *p, const uint block, uint place, const uint steps)
{
    const uint behind = steps * STEP_HALVES + block % 2 * (STEP_HALVES / 2);
#if SG == 8
    const uint at = p->tile[block / 2] + place + behind;
    __global const uint *words =
        (__global const uint *)p->x + (at / 2 + get_sub_group_local_id() * 8);
    return as_int8((uint8)(vload4(0, words), vload4(1, words)));
#else
    __global const ushort *from = p->x + p->tile[block / 2];
    from += place;
    from += behind;
#if MATRIX_ENGINE
    return as_short8(intel_sub_group_block_read_us8(from));
#else
    ushort rows[8];
    for (uint i = 0; i < 8; i++)
        rows[i] = from[i * 16 + get_sub_group_local_id()];
    return as_short8(vload8(0, rows));
#endif
#endif
}

/* Where row `row` of a weight begins, in units of STEP_PLACE_<format>. */
static inline uint
row_place(const uint format, const struct weight *w, ulong row)
{
#define ROW_PLACE(format)                                                                \
    (uint)((row * (w->view.x / PASTE(COLUMNS_, format)) +                                \
            w->view.y / PASTE(COLUMNS_, format)) *                                       \
           PASTE(BYTES_, format) / PASTE(STEP_PLACE_, format))
    return BY_FORMAT(format, ROW_PLACE);
}

/* Makes row `row` of an expert this lane's row of row block r. */
static inline void
take_row(struct product *p, const uint r, const struct weight *w, ulong expert, uint row)
{
    p->w[r] = w;
    p->place[r] = row_place(w->format, w, stored_row(w, expert, row));
}

/* Takes the tiles from `first` on; those behind `last` repeat it. */
static inline void
take_tiles(struct product *p, __global const ushort *x, uint first, uint last,
           uint k_count)
{
    p->x = x;
    p->tiles = min(last + 1 - first, (uint)TOKEN_TILES);
#pragma unroll
    for (uint i = 0; i < TOKEN_TILES; i++)
        p->tile[i] = (tile_place)min(first + i, last) * tile_halves(k_count);
}

/* Stores a row's results for eight tokens, `step` floats apart. */
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

/* acc += factor times the products of `steps` steps, the first at `place`, `apart` steps apart. */
static inline void
add_steps(const struct product *p, const uint rows, const uint tiles, uint place,
          const uint steps, const uint apart, int8 b[ROW_BLOCKS][MOST_STEPS],
          const float factor[ROW_BLOCKS], float8 acc[ROW_BLOCKS][TOKEN_BLOCKS])
{
    UNROLL_PRODUCTS
    for (uint i = 0; i < 2 * tiles; i++) {
        float8 c[ROW_BLOCKS];
#pragma unroll
        for (uint r = 0; r < rows; r++)
            c[r] = 0.0f;
        UNROLL_PRODUCTS
        for (uint s = 0; s < steps; s++) {
            const matrix_a a = load_step(p, i, place, s * apart);
            UNROLL_PRODUCTS
            for (uint r = 0; r < rows; r++)
                c[r] = matrix_mad(a, b[r][s], c[r]);
        }
#pragma unroll
        for (uint r = 0; r < rows; r++)
            acc[r][i] += c[r] * factor[r];
    }
}

/* acc += the products of a span. */
static inline void
add_span(const uint format, const struct product *p, const uint rows, const uint tiles,
         uint super, uint span, float8 acc[ROW_BLOCKS][TOKEN_BLOCKS])
{
    const uint place = step_place(super, step_of(format, span, 0));
    int8 b[ROW_BLOCKS][MOST_STEPS];
    float factor[ROW_BLOCKS];
#pragma unroll
    for (uint r = 0; r < rows; r++)
        factor[r] = make_span(format, p->w[r]->data,
                              super_place(format, p->place[r], super), span, b[r]);
    add_steps(p, rows, tiles, place, BY_FORMAT(format, SPAN_K) / 16,
              step_of(format, 0, 1), b, factor, acc);
}

/* acc += the products with the sums of x in a super-block, of which the row has `blocks` blocks of
 * 32 columns. */
static inline void
add_sums(const uint format, const struct product *p, const uint rows, const uint tiles,
         uint super, uint blocks, float8 acc[ROW_BLOCKS][TOKEN_BLOCKS])
{
    int8 b[ROW_BLOCKS][MOST_STEPS];
    float factor[ROW_BLOCKS];
#pragma unroll
    for (uint r = 0; r < rows; r++)
        factor[r] = make_sums(format, p->w[r]->data,
                              super_place(format, p->place[r], super), blocks, b[r]);
    add_steps(p, rows, tiles, step_place(super, SUM_STEP), BY_FORMAT(format, SUMS), 1, b,
              factor, acc);
}

/* acc += the products of all columns of the first `rows` row blocks, which have one format, and of
 * `tiles` tiles. Formats without sums take one loop, because compilers move acc between registers
 * where a loop lies in another. */
static inline void
multiply_blocks(const uint format, const struct product *p, const uint rows,
                const uint tiles, uint k_count, float8 acc[ROW_BLOCKS][TOKEN_BLOCKS])
{
    const uint span_k = BY_FORMAT(format, SPAN_K), spans = SUPER_K / span_k;
    if (!BY_FORMAT(format, SUMS)) {
#pragma unroll 1
        for (uint i = 0; i < k_count / span_k; i++)
            add_span(format, p, rows, tiles, i / spans, i % spans, acc);
        return;
    }
#pragma unroll 1
    for (uint super = 0; super < supers_of(k_count); super++) {
        const uint k = min(k_count - super * SUPER_K, (uint)SUPER_K);
        uint span = 0;
        add_sums(format, p, rows, tiles, super, k / 32, acc);
#pragma unroll 1
        do {
            add_span(format, p, rows, tiles, super, span, acc);
        } while (++span < k / span_k);
    }
}
