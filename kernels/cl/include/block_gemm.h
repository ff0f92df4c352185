/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of weights in blocks (block_steps.h) times tiles; an implementation of step_gemm.h.
 *
 * The scale of a span of columns is multiplied into its halves, which rounds them. Minimums are
 * subtracted by products with the sums of x, before the spans of each super-block.
 */
/* The rows of a lane, and what they are multiplied by. */
struct product {
    const struct weight *w[ROW_BLOCKS];
    uint place[ROW_BLOCKS]; /* where the row begins, in units of STEP_PLACE_<format> */
    struct tiles x;
    __local uint *halves; /* local memory of shared_gemm.h */
};

/* Returns where row `row` of a weight begins, in units of STEP_PLACE_<format>. */
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

/* Makes the lane's row of row block `from` that of row block `to`. */
static inline void
move_row(struct product *p, const uint from, const uint to)
{
    p->w[to] = p->w[from];
    p->place[to] = p->place[from];
}

/* Returns the factor of the products of an expert's rows. */
static inline float
product_factor(const struct weight *w, ulong expert)
{
    return weight_factor(w, stored_row(w, expert, 0)) / SCALE_TIMES;
}

/* Decodes a span of the lane's row of row block r into b, times its scale. */
static inline void
make_halves(const uint format, const struct product *p, const uint r, uint super,
            uint span, int8 *b)
{
    const float factor = make_span(format, p->w[r]->data,
                                   super_place(format, p->place[r], super), span, b);
    UNROLL_PRODUCTS
    for (uint s = 0; s < BY_FORMAT(format, SPAN_K) / 16; s++)
        b[s] = multiplied_step(b[s], factor * SCALE_TIMES);
}

/* Sets b to the coefficients of the sums of x in a super-block of which the row has `blocks` blocks
 * of 32 columns; returns their factor. */
static inline float
make_coefficients(const uint format, const struct product *p, const uint r, uint super,
                  uint blocks, int8 *b)
{
    return make_sums(format, p->w[r]->data, super_place(format, p->place[r], super),
                     blocks, b) *
           SCALE_TIMES;
}

#if SHARES > 1
/* The functions that shared_gemm.h needs of weights. Rows are whole blocks, and whole places. */
#define BYTES_IN_PLACES(format, n)                                                       \
    (n * PASTE(BYTES_, format) % PASTE(STEP_PLACE_, format))
#define WHOLE_BLOCKS(format)                                                             \
    (PASTE(COLUMNS_, format) * (BYTES_IN_PLACES(format, 1) == 0   ? 1                    \
                                : BYTES_IN_PLACES(format, 2) == 0 ? 2                    \
                                                                  : 4))
#define WHOLE_K(format) BY_FORMAT(format, WHOLE_BLOCKS)
#define SUMS_OF(format) BY_FORMAT(format, SUMS)

static inline void
make_part(const uint format, const struct product *p, const uint r, uint part, uint left,
          int8 b[MOST_STEPS])
{
    const uint span_k = BY_FORMAT(format, SPAN_K), spans = PART_K / span_k;
    const uint super = part / SUPER_PARTS, first = part % SUPER_PARTS * spans;
#pragma unroll
    for (uint n = 0; n < spans; n++) {
        if (n == 0 || n * span_k < left)
            make_halves(format, p, r, super, first + n, b + n * (span_k / 16));
    }
}

static inline uint
part_step(const uint format, uint part, uint i)
{
    const uint span_k = BY_FORMAT(format, SPAN_K), steps = span_k / 16;
    return step_of(format, part * (PART_K / span_k) + i / steps, i % steps);
}
#else
/* acc += the products of a span. */
static inline void
add_span(const uint format, const struct product *p, const uint rows, const uint tiles,
         uint super, uint span, float8 acc[ROW_BLOCKS][TOKEN_BLOCKS])
{
    const uint steps = BY_FORMAT(format, SPAN_K) / 16;
    __global const ushort *from[TOKEN_TILES];
    int8 b[ROW_BLOCKS][MOST_STEPS];
#pragma unroll
    for (uint r = 0; r < rows; r++)
        make_halves(format, p, r, super, span, b[r]);
    tiles_at(&p->x, tiles, step_place(super, step_of(format, span, 0)), from);
    add_products(from, rows, tiles, 0, steps, step_of(format, 0, 1), b, acc);
}

/* acc += the products with the sums of x in a super-block, of which the row has `blocks` blocks of
 * 32 columns. */
static inline void
add_sums(const uint format, const struct product *p, const uint rows, const uint tiles,
         uint super, uint blocks, float8 acc[ROW_BLOCKS][TOKEN_BLOCKS])
{
    __global const ushort *from[TOKEN_TILES];
    int8 b[ROW_BLOCKS][MOST_STEPS];
    float factor[ROW_BLOCKS];
#pragma unroll
    for (uint r = 0; r < rows; r++)
        factor[r] = make_coefficients(format, p, r, super, blocks, b[r]);
    tiles_at(&p->x, tiles, step_place(super, SUM_STEP), from);
    add_scaled_products(from, rows, tiles, 0, BY_FORMAT(format, SUMS), 1, b, factor, acc);
}

/* acc += the products of all columns of the first `rows` row blocks, which have one format, and of
 * `tiles` tiles. Formats without sums take one loop, because compilers move acc between registers
 * where a loop lies in another. A turn of it has two short spans, so that it is known which of a
 * pair of blocks begins with a word: rows are whole pairs (primitives/matrix_engine.c). */
static inline void
multiply_rows(const uint format, const struct product *p, const uint rows,
              const uint tiles, uint k_count, float8 acc[ROW_BLOCKS][TOKEN_BLOCKS])
{
    const uint span_k = BY_FORMAT(format, SPAN_K);
    if (!BY_FORMAT(format, SUMS)) {
        const uint turn = span_k < 64 ? 2 : 1, turns = SUPER_K / span_k / turn;
#pragma unroll 1
        for (uint i = 0; i < k_count / span_k / turn; i++) {
            UNROLL_PRODUCTS
            for (uint n = 0; n < turn; n++)
                add_span(format, p, rows, tiles, i / turns, i % turns * turn + n, acc);
        }
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
#endif
