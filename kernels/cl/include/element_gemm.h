/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of weights of elements (element_steps.h) times tiles; an implementation of step_gemm.h. A
 * turn of the loop is 128 columns; the remaining columns of a row take turns of one unit.
 */
#define TURN_UNITS (128 / UNIT_K)
/* Units that are multiplied together: two if their products share a float scale, else one. */
#define SPAN_UNITS (FACTOR_SCALE && GROUP % (2 * UNIT_K) == 0 ? 2 : 1)

/* The rows of a lane, and what they are multiplied by. */
struct product {
    const struct weight *w[ROW_BLOCKS];
    struct element_row row[ROW_BLOCKS];
    struct tiles x;
    __local uint *halves; /* local memory of shared_gemm.h */
};

/* Makes row `row` of an expert this lane's row of row block r. */
static inline void
take_row(struct product *p, const uint r, const struct weight *w, ulong expert, uint row)
{
    p->w[r] = w;
    p->row[r] = element_row(w, stored_row(w, expert, row));
}

/* Makes the lane's row of row block `from` that of row block `to`. */
static inline void
move_row(struct product *p, const uint from, const uint to)
{
    p->w[to] = p->w[from];
    p->row[to] = p->row[from];
}

/* Returns the factor of the products of an expert's rows. */
static inline float
product_factor(const struct weight *w, ulong expert)
{
    return 1.0f / SCALE_TIMES;
}

#if GROUP
/* Sets g to the group of unit u of a turn of `units` units, which begins at column k, unless it is
 * the group of the unit before. */
static inline void
take_group(const struct weight *w, const struct element_row *row, const uint units,
           uint k, const uint u, struct group_halves *g)
{
    const uint turn_k = units * UNIT_K, unit_k = u * UNIT_K;
    if (GROUP % turn_k == 0) {
        if (u == 0)
            *g = group_halves(w, row, k / GROUP, 0, false);
    } else if (turn_k % GROUP == 0) {
        if (unit_k % GROUP == 0)
            *g = group_halves(w, row, k / GROUP, unit_k / GROUP, turn_k / GROUP % 2 == 0);
    } else {
        *g = group_halves(w, row, (k + unit_k) / GROUP, 0, false);
    }
}
#endif

#if SHARES > 1
#if FACTOR_SCALE
#error "factors of products are not shared"
#endif
/* The functions that shared_gemm.h needs of weights. */
#define WHOLE_K(format) (GROUP ? GROUP : UNIT_K)
#define SUMS_OF(format) 0

static inline void
make_part(const uint format, const struct product *p, const uint r, uint part, uint left,
          int8 b[MOST_STEPS])
{
    const uint units = PART_K / UNIT_K, k = part * PART_K;
    struct group_halves g;
#pragma unroll
    for (uint u = 0; u < units; u++) {
        if (u > 0 && u * UNIT_K >= left)
            continue;
#if GROUP
        take_group(p->w[r], &p->row[r], units, k, u, &g);
#endif
        make_unit(p->row[r].words + k / STEP_PLANES + u * UNIT_WORDS, &g,
                  b + u * UNIT_STEPS);
    }
}

static inline uint
part_step(const uint format, uint part, uint i)
{
    return part * MOST_STEPS + i;
}

static inline float
make_coefficients(const uint format, const struct product *p, const uint r, uint super,
                  uint blocks, int8 *b)
{
    return 0.0f;
}
#else
/* acc += the products of the `units` units from column k on. */
static inline void
add_turn(const struct product *p, const uint rows, const uint tiles, const uint units,
         uint k, float8 acc[ROW_BLOCKS][TOKEN_BLOCKS])
{
    const uint span = min((uint)SPAN_UNITS, units);
    __global const ushort *from[TOKEN_TILES];
    struct group_halves g[ROW_BLOCKS];
    tiles_at(&p->x, tiles, step_place(k / SUPER_K, k % SUPER_K / 16), from);
    UNROLL_PRODUCTS
    for (uint u = 0; u < units; u += span) {
        int8 b[ROW_BLOCKS][MOST_STEPS];
        float factor[ROW_BLOCKS];
        UNROLL_PRODUCTS
        for (uint r = 0; r < rows; r++) {
            __global const uint *words = p->row[r].words + k / STEP_PLANES;
#if GROUP
            take_group(p->w[r], &p->row[r], units, k, u, &g[r]);
#endif
            UNROLL_PRODUCTS
            for (uint i = 0; i < span; i++)
                make_unit(words + (u + i) * UNIT_WORDS, &g[r], b[r] + i * UNIT_STEPS);
            factor[r] = g[r].factor;
        }
        if (FACTOR_SCALE)
            add_scaled_products(from, rows, tiles, u * UNIT_STEPS, span * UNIT_STEPS, 1,
                                b, factor, acc);
        else
            add_products(from, rows, tiles, u * UNIT_STEPS, span * UNIT_STEPS, 1, b, acc);
    }
}

/* acc += the products of all columns of the first `rows` row blocks, and of `tiles` tiles. */
static inline void
multiply_rows(const uint format, const struct product *p, const uint rows,
              const uint tiles, uint k_count, float8 acc[ROW_BLOCKS][TOKEN_BLOCKS])
{
    uint k = 0;
#pragma unroll 1
    for (; k + TURN_UNITS * UNIT_K <= k_count; k += TURN_UNITS * UNIT_K)
        add_turn(p, rows, tiles, TURN_UNITS, k, acc);
#if !GROUP || GROUP % (TURN_UNITS * UNIT_K)
#pragma unroll 1
    for (; k < k_count; k += UNIT_K)
        add_turn(p, rows, tiles, 1, k, acc);
#endif
}
#endif
