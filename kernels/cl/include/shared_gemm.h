/* SPDX-License-Identifier: Apache-2.0
 *
 * multiply_rows of step_gemm.h by the SHARES sub-groups of a work-group together. They multiply the
 * same rows of weights by different tiles, and share the work of converting weights to halves.
 *
 * A turn is TURN_K columns. In a turn each sub-group converts one part, that is PART_K columns of
 * one row block, and writes it to local memory. After a barrier, all sub-groups multiply all parts.
 * The next turn uses the other half of the memory. One barrier a turn is enough: a sub-group that
 * writes to a half again has passed the barrier of the turn between, which the others reach only
 * after they have read that half. The coefficients of sums (block_steps.h) take a turn of their own
 * before each super-block.
 *
 * In local memory, a lane's words of a step are SG words apart, and neighbouring lanes have
 * neighbouring words, so that no two lanes access one bank.
 *
 * A sub-group without tiles converts its parts, too, but multiplies nothing. Where matrix engines
 * are emulated it repeats the last tile, because in PoCL all sub-groups of a work-group must take
 * part in an exchange between lanes.
 *
 * A format of weights defines
 *
 *     WHOLE_K(format)             a number that divides the columns of every row
 *     make_part(format, p, r, part, left, b)
 *                                 makes b of a part of row block r, which has `left` columns from
 *                                 the part's start on; does not set the steps after these
 *     part_step(format, part, i)  the index in a super-block of step i of its part `part`
 *     SUMS_OF(format)             number of products with sums in a super-block; 0: no sums
 *     make_coefficients(format, p, r, super, blocks, b)
 *                                 makes b of these products; returns their factor
 */
#if SHARES % ROW_BLOCKS
#error "each row block has as many sub-groups that make its halves"
#endif
#define TURN_PARTS  (SHARES / ROW_BLOCKS) /* parts of each row block in a turn */
#define TURN_K      (TURN_PARTS * PART_K)
#define SUPER_TURNS (SUPER_K / TURN_K)
#define STEP_WORDS  (8 * SG)
#define PART_WORDS  (MOST_STEPS * STEP_WORDS)
#define TURN_WORDS  (SHARES * PART_WORDS)

/* Declares, in a kernel, the local memory of its product p. */
#define SHARED_HALVES(p)                                                                 \
    __local uint shared_halves[2 * TURN_WORDS];                                          \
    (p).halves = shared_halves;

/* Writes a step of a row block to local memory, from which get_step reads it. */
static inline void
put_step(__local uint *to, int8 b)
{
#if MATRIX_ENGINE && defined(cl_intel_subgroup_local_block_io)
    intel_sub_group_block_write8(to, as_uint8(b));
#else
    uint words[8];
    vstore8(as_uint8(b), 0, words);
#pragma unroll
    for (uint i = 0; i < 8; i++)
        to[i * SG + get_sub_group_local_id()] = words[i];
#endif
}

#if MATRIX_ENGINE
/* The step is read by one message; compilers make two messages from a block read. `volatile` keeps
 * it from being moved across a barrier. A message takes its address from the first element of a
 * register, so the address is moved to XM_P. */
#if SG == 8
#define STEP_MESSAGE "d32x64t"
#else
#define STEP_MESSAGE "d64x64t"
#endif
static inline int8
get_step(__local const uint *from)
{
    int8 b;
    __asm__ volatile("{\n"
                     ".decl XM_P v_type=G type=ud num_elts=1 align=GRF\n"
                     ".decl XM_A v_type=G type=ud num_elts=1 alias=<%1,0>\n"
                     "mov (M1_NM, 1) XM_P(0,0)<1> XM_A(0,0)<0;1,0>\n"
                     "lsc_load.slm (M1_NM, 1) %0:" STEP_MESSAGE " flat[XM_P]:a32\n"
                     "}\n"
                     : "=rw"(b)
                     : "rw.u"((uint)(size_t)from));
    return b;
}
#else
static inline int8
get_step(__local const uint *from)
{
    uint words[8];
    for (uint i = 0; i < 8; i++)
        words[i] = from[i * SG + get_sub_group_local_id()];
    return as_int8(vload8(0, words));
}
#endif

/* Returns the place of part n of row block r in the memory of a turn. */
static inline __local uint *
part_in(__local uint *turn, uint n, const uint r)
{
    return turn + (n * ROW_BLOCKS + r) * PART_WORDS;
}

static inline bool
multiplies(const struct tiles *x)
{
    return !MATRIX_ENGINE || x->n > 0;
}

/* What a sub-group converts in each turn: part n of row block r. */
struct share {
    struct product p; /* the product, with row block r as its row block 0 */
    uint n, r;
};

static inline struct share
share_of(const struct product *p)
{
    const uint id = sub_group_broadcast(get_sub_group_id(), 0);
    struct share s = {.p = *p, .n = id / ROW_BLOCKS, .r = id % ROW_BLOCKS};
#pragma unroll
    for (uint r = 1; r < ROW_BLOCKS; r++) {
        if (s.r == r)
            move_row(&s.p, r, 0);
    }
    return s;
}

/* Converts the sub-group's part of turn t and writes it to `turn`; nothing if it has no columns. */
static inline void
put_part(const uint format, const struct share *s, uint t, uint k_count,
         __local uint *turn)
{
    const uint part = t * TURN_PARTS + s->n;
    const uint left = WHOLE_K(format) % TURN_K == 0
                          ? PART_K
                          : max((int)k_count - (int)(part * PART_K), 0);
    __local uint *to = part_in(turn, s->n, s->r);
    int8 b[MOST_STEPS];
    if (left == 0)
        return;
    make_part(format, &s->p, 0, part, left, b);
#pragma unroll
    for (uint i = 0; i < MOST_STEPS; i++) {
        if (16 * i < left)
            put_step(to + i * STEP_WORDS, b[i]);
    }
}

/* acc += the products of part n of turn t; the row has `left` columns, at least one, from the
 * part's start on. */
static inline void
add_part(const uint format, const struct tiles *x, const uint tiles, uint t, const uint n,
         uint left, __local uint *turn, float8 acc[ROW_BLOCKS][TOKEN_BLOCKS])
{
    const uint part = t * TURN_PARTS + n;
    __global const ushort *from[TOKEN_TILES];
    tiles_at(
        x, tiles,
        step_place(part / SUPER_PARTS, part_step(format, part % SUPER_PARTS, 0)), from);
    UNROLL_PRODUCTS
    for (uint i = 0; i < MOST_STEPS; i++) {
        int8 b[ROW_BLOCKS][MOST_STEPS];
        if (WHOLE_K(format) % PART_K != 0 && 16 * i >= left)
            continue;
#pragma unroll
        for (uint r = 0; r < ROW_BLOCKS; r++)
            b[r][0] = get_step(part_in(turn, n, r) + i * STEP_WORDS);
        add_products(from, ROW_BLOCKS, tiles, part_step(format, 0, i), 1, 1, b, acc);
    }
}

/* acc += the products of turn t. */
static inline void
add_turn(const uint format, const struct tiles *x, const uint tiles, uint t, uint k_count,
         __local uint *turn, float8 acc[ROW_BLOCKS][TOKEN_BLOCKS])
{
    const uint left = k_count - t * TURN_K;
    const uint parts = WHOLE_K(format) % TURN_K == 0 ? TURN_PARTS
                                                     : (left + PART_K - 1) / PART_K;
    if (!multiplies(x))
        return;
    UNROLL_PRODUCTS
    for (uint n = 0; n < TURN_PARTS; n++) {
        if (n < parts)
            add_part(format, x, tiles, t, n, left - n * PART_K, turn, acc);
    }
}

/* Writes the coefficients of a super-block's sums to `turn`, and their factor after them. */
static inline void
put_coefficients(const uint format, const struct share *s, uint super, uint k_count,
                 __local uint *turn)
{
    const uint blocks = min(k_count - super * SUPER_K, (uint)SUPER_K) / 32;
    __local uint *to = part_in(turn, 0, s->r);
    int8 b[MOST_STEPS];
    if (s->n > 0)
        return;
    const float factor = make_coefficients(format, &s->p, 0, super, blocks, b);
#pragma unroll
    for (uint i = 0; i < SUMS_OF(format); i++)
        put_step(to + i * STEP_WORDS, b[i]);
    to[SUMS_OF(format) * STEP_WORDS + get_sub_group_local_id()] = as_uint(factor);
}

/* acc += the products of a super-block's coefficients and sums. */
static inline void
add_sums(const uint format, const struct tiles *x, const uint tiles, uint super,
         __local uint *turn, float8 acc[ROW_BLOCKS][TOKEN_BLOCKS])
{
    __global const ushort *from[TOKEN_TILES];
    int8 b[ROW_BLOCKS][MOST_STEPS];
    float factor[ROW_BLOCKS];
    if (!multiplies(x))
        return;
#pragma unroll
    for (uint r = 0; r < ROW_BLOCKS; r++) {
        __local uint *of = part_in(turn, 0, r);
#pragma unroll
        for (uint i = 0; i < SUMS_OF(format); i++)
            b[r][i] = get_step(of + i * STEP_WORDS);
        factor[r] =
            as_float(of[SUMS_OF(format) * STEP_WORDS + get_sub_group_local_id()]);
    }
    tiles_at(x, tiles, step_place(super, SUM_STEP), from);
    add_scaled_products(from, ROW_BLOCKS, tiles, 0, SUMS_OF(format), 1, b, factor, acc);
}

/* acc += the products of all columns with `tiles` tiles; `rows` is ROW_BLOCKS. */
static inline void
multiply_rows(const uint format, const struct product *p, const uint rows,
              const uint tiles, uint k_count, float8 acc[ROW_BLOCKS][TOKEN_BLOCKS])
{
    const struct share share = share_of(p);
    const uint turns = (k_count + TURN_K - 1) / TURN_K;
    const uint together = SUMS_OF(format) ? SUPER_TURNS : 1;
    uint t = 0, at = 0;
    barrier(CLK_LOCAL_MEM_FENCE); /* others may read what an earlier call has put there */
#pragma unroll 1
    do {
        if (SUMS_OF(format)) {
            put_coefficients(format, &share, t / SUPER_TURNS, k_count, p->halves + at);
            barrier(CLK_LOCAL_MEM_FENCE);
            add_sums(format, &p->x, tiles, t / SUPER_TURNS, p->halves + at, acc);
            at ^= TURN_WORDS;
        }
        do {
            put_part(format, &share, t, k_count, p->halves + at);
            barrier(CLK_LOCAL_MEM_FENCE);
            add_turn(format, &p->x, tiles, t, k_count, p->halves + at, acc);
            at ^= TURN_WORDS;
        } while (++t % together && t < turns);
    } while (t < turns);
}
