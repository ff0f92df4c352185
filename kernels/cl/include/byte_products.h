/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of a unit of rows of weights with a unit of x (byte_units.h): sums are integers over a
 * stretch of columns with one scale, then floats.
 *
 * As many tokens are multiplied at once as a register has lanes (a part of a vector of 16 tokens):
 * compilers that split vectors of two registers finish one half before the other, and meanwhile
 * spill what both need.
 */
#if BYTE_MADDS
typedef int8 lane_ints;
typedef uint8 lane_words;
typedef short16 lane_shorts;
typedef float8 lane_floats;
#define LANE_PARTS      2 /* parts (registers) of a vector of 16 tokens */
#define LANE_FLOATS(v)  convert_float8(v)
#define ADD_PAIRS       add_pairs8
#define MULTIPLY_BYTES  byte_products8
#else
typedef int16 lane_ints;
typedef uint16 lane_words;
typedef float16 lane_floats;
#define LANE_PARTS     1
#define LANE_FLOATS(v) convert_float16(v)
#define ADD_PAIRS      add_pairs
#endif
/* words of each token in a part for up to 4 tokens; half as many for 8 */
#define FEW_WORDS (4 / LANE_PARTS)
/* Part n of the vectors of 16 tokens at `v`. */
#define PART(v, n)        (((const lane_ints *)(v))[n])
#define FLOATS_OF_PART(v, n) (((const lane_floats *)(v))[n])

/* Rows whose sums stay in registers, for one part of tokens. */
#ifdef __AVX512F__
#define VECTOR_ROWS 16
#else
#define VECTOR_ROWS 4
#endif
#define MOST_ROWS (VECTOR_ROWS / (BYTE_DOTS ? X_PLANES : 1))
#if INTEGER_FACTORS && BYTE_DOTS
#define ROW_SUMS 2 /* sums of a stretch, and of all stretches */
#else
#define ROW_SUMS 1
#endif

/* The rows and parts of tokens whose products are summed at once, and their sums. */
struct row_block {
    uint row, rows, n, parts;
};

struct sums {
    lane_ints all[MOST_ROWS][TOKEN_VECTORS];
#if IN_SHORTS
    lane_shorts some[MOST_ROWS][TOKEN_VECTORS]; /* not yet added to `all` */
#elif INTEGER_FACTORS
    lane_ints some[MOST_ROWS][TOKEN_VECTORS]; /* the same */
#elif BYTE_DOTS && !X_BYTES
    lane_ints high[MOST_ROWS][TOKEN_VECTORS]; /* sums of products with the high bytes of x */
#endif
};

/* Returns `d` words of a row, repeated to fill the lanes. */
__attribute__((always_inline)) static inline lane_words
repeated(const uint *w, const uint d)
{
    if (d == 1)
        return *w;
#if LANE_PARTS == 2
    if (d == 2)
        return as_uint8((ulong4)(*(const ulong *)w));
    return (uint8)(*(const uint4 *)w, *(const uint4 *)w);
#else
    if (d == 2)
        return as_uint16((ulong8)(*(const ulong *)w));
    const uint4 q = *(const uint4 *)w;
    return (uint16)(q, q, q, q);
#endif
}

/* Sets the begin of sums for a format's zero point: -zero times the sums of x. */
static inline void
begin_sums(struct x_unit *x, int zero, const uint vectors)
{
#if BLOCKS
    for (uint s = 0; s < STRETCHES; s++)
        for (uint n = 0; n < vectors; n++)
            x->begin[s][n] = x->less[s][n] * zero;
#endif
}

/* Returns what the integer sums of a row over stretch s begin with. */
__attribute__((always_inline)) static inline lane_ints
begin_with(const struct rows_unit *w, const struct x_unit *x, uint row, uint s, uint n)
{
#if BLOCKS
    return PART(x->begin[s], n);
#elif HAS_ZP || OFFSET
    return PART(x->less[s], n) * w->zero[row][s];
#else
    return 0;
#endif
}

/* Adds the products of plane p with `d` words from `word` on, the `nth` time in stretch s. */
__attribute__((always_inline)) static inline void
add_words(const struct rows_unit *w, const struct x_unit *x, const struct row_block *block,
          uint word, const uint p, const uint nth, const bool is_last, const uint d,
          const uint s, struct sums *sums)
{
#pragma unroll
    for (uint r = 0; r < block->rows; r++) {
        const lane_words q =
            repeated((const uint *)w->words[block->row + r][p] + word, d);
#pragma unroll
        for (uint i = 0; i < block->parts; i++) {
            const uint n = block->n + i;
            lane_ints *all = &sums->all[r][i];
#if IN_PAIRS
            *all = ADD_PAIRS(*all, __builtin_astype(q, lane_ints),
                             PART(x->words[p][word / d], n));
#elif IN_SHORTS
#if INTEGER_FACTORS
            const lane_ints multiplier =
                (int)w->multiplier[block->row + r][s * 8 / STRETCHES];
#else
            const lane_ints multiplier = 0x00010001;
#endif
            const lane_shorts v = MULTIPLY_BYTES(q, PART(x->words[0][word / d], n));
            lane_shorts *some = &sums->some[r][i];
            *some = nth % SHORT_SUMS ? *some + v : v;
            if (nth % SHORT_SUMS + 1 == SHORT_SUMS || is_last)
                *all = ADD_PAIRS(*all, __builtin_astype(*some, lane_ints), multiplier);
#elif INTEGER_FACTORS
            lane_ints *some = &sums->some[r][i];
            *some = add_bytes(nth ? *some : (lane_ints)0, q,
                              PART(x->words[0][word / d], n));
            if (is_last)
                *all += *some * (int)w->multiplier[block->row + r][s * 8 / STRETCHES];
#else
            *all = add_bytes(*all, q, PART(x->words[X_PLANES - 1][word / d], n));
#if !X_BYTES
            lane_ints *high = &sums->high[r][i];
            *high = add_bytes(nth ? *high : (lane_ints)0, q,
                              PART(x->words[0][word / d], n));
            if (is_last)
                *all += *high << 8;
#endif
#endif
        }
    }
}

/* Adds the products over stretch s. */
__attribute__((always_inline)) static inline void
multiply_stretch(const struct rows_unit *w, const struct x_unit *x,
                 const struct row_block *block, const uint s, const uint d,
                 struct sums *sums)
{
    const uint halves = STRETCHES == 8 ? 1 : 2;
    const uint first = STRETCHES == 8 ? s % 2 * 16 + s / 2 * 4 : s * 4;
#pragma unroll
    for (uint i = 0; i < halves * 4; i += d)
#pragma unroll
        for (uint p = 0; p < PAIR_PLANES; p++)
            add_words(w, x, block, first + i / 4 * 16 + i % 4, p, i / d,
                      i + d == halves * 4, d, s, sums);
}

#if INTEGER_FACTORS
/* Returns the integers with which the sums of a row's products begin: minus the sum over all
 * stretches of scale × zero point × sum of x's integers. 0 if the zero points are subtracted later,
 * as minimums (MINIMUMS). */
__attribute__((always_inline)) static inline lane_ints
taken_off(const struct rows_unit *w, const struct x_unit *x, uint row, uint n,
          const uint d)
{
    lane_ints sum = 0;
#pragma unroll
    for (uint i = 0; !MINIMUMS && i < 4; i += d)
        sum = ADD_PAIRS(sum, PART(x->less[i / d], n),
                        __builtin_astype(repeated(w->taken[row] + i, d), lane_ints));
    return sum;
}

/* Adds the products over all stretches. */
__attribute__((always_inline)) static inline void
add_unit(const struct rows_unit *w, const struct x_unit *x, const struct row_block *block,
         const uint d, float16 (*f)[TOKEN_VECTORS])
{
    struct sums sums;
#pragma unroll
    for (uint r = 0; r < block->rows; r++)
#pragma unroll
        for (uint i = 0; i < block->parts; i++)
            sums.all[r][i] = taken_off(w, x, block->row + r, block->n + i, d);
#pragma unroll 1
    for (uint s = 0; s < STRETCHES; s++)
        multiply_stretch(w, x, block, s, d, &sums);
#pragma unroll
    for (uint r = 0; r < block->rows; r++) {
        const uint row = block->row + r;
#pragma unroll
        for (uint i = 0; i < block->parts; i++) {
            const uint n = block->n + i;
            const lane_floats factor = FLOATS_OF_PART(x->factor[0], n);
            lane_floats y = FLOATS_OF_PART(f[row], n);
            y += LANE_FLOATS(sums.all[r][i]) * (factor * w->scale[row][0]);
#pragma unroll
            for (uint s = 0; MINIMUMS && s < STRETCHES; s += d) {
                const lane_words m = repeated((const uint *)w->minimum[row] + s, d);
                y -= FLOATS_OF_PART(x->sums[s / d], n) * __builtin_astype(m, lane_floats);
            }
            ((lane_floats *)f[row])[n] = y;
        }
    }
}
#endif

/* Adds the products over stretch s. Always inlined, so that the sums stay in registers. */
__attribute__((always_inline)) static inline void
add_stretch(const struct rows_unit *w, const struct x_unit *x, const struct row_block *block,
            uint s, const uint d, float16 (*f)[TOKEN_VECTORS])
{
    struct sums sums;
#pragma unroll
    for (uint r = 0; r < block->rows; r++)
#pragma unroll
        for (uint i = 0; i < block->parts; i++)
            sums.all[r][i] = begin_with(w, x, block->row + r, s, block->n + i);
    multiply_stretch(w, x, block, s, d, &sums);
#pragma unroll
    for (uint r = 0; r < block->rows; r++) {
        const uint row = block->row + r;
#pragma unroll
        for (uint i = 0; i < block->parts; i++) {
            const uint n = block->n + i;
            const lane_floats factor =
                FLOATS_OF_PART(x->factor[X_BYTES ? s * 4 / STRETCHES : 0], n);
            lane_floats y = FLOATS_OF_PART(f[row], n);
            y += LANE_FLOATS(sums.all[r][i]) * (factor * w->scale[row][s]);
            if (MINIMUMS)
                y -= FLOATS_OF_PART(x->sums[s], n) * w->minimum[row][s];
            ((lane_floats *)f[row])[n] = y;
        }
    }
}

/* Adds the products of 16 rows from `first` on. Without products of four bytes (BYTE_DOTS), one
 * part of tokens is multiplied by many rows at once, else all parts by few rows. */
__attribute__((always_inline)) static inline void
add_rows(const struct rows_unit *w, const struct x_unit *x, uint first, const uint parts,
         const uint d, float16 (*f)[TOKEN_VECTORS])
{
    const uint at_once = BYTE_DOTS ? parts : 1;
    const uint rows = (at_once > 1 ? MOST_ROWS / 2 : MOST_ROWS) / ROW_SUMS;
#pragma unroll 1
    for (uint r = first; r < first + 16; r += rows) {
#pragma unroll 1
        for (uint n = 0; n < parts; n += at_once) {
            const struct row_block block = {r, rows, n, at_once};
#if INTEGER_FACTORS
            add_unit(w, x, &block, d, f);
#else
#pragma unroll 1
            for (uint s = 0; s < STRETCHES; s++)
                add_stretch(w, x, &block, s, d, f);
#endif
        }
    }
}
