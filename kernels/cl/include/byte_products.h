/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of a unit of rows of weights with a unit of x (byte_units.h): sums are integers over a
 * stretch of columns with one factor, then floats.
 */
/* Rows whose sums are registers, of one vector of tokens. */
#ifdef __AVX512F__
#define VECTOR_ROWS 16
#else
#define VECTOR_ROWS 4
#endif
#define MOST_ROWS (VECTOR_ROWS / (BYTE_DOTS ? X_PLANES : 1))

/* Rows and vectors of tokens that are multiplied at once, and their sums. */
struct part {
    uint row, n;
    uint rows, vectors;
};

struct sums {
    int16 all[MOST_ROWS][TOKEN_VECTORS];
#if IN_SHORTS
    short32 some[MOST_ROWS][TOKEN_VECTORS]; /* not in `all` yet */
#elif BYTE_DOTS && !X_BYTES
    int16 high[MOST_ROWS][TOKEN_VECTORS]; /* with the high bytes of x */
#endif
};

/* `d` words of a row, as often as lanes hold. */
__attribute__((always_inline)) static inline uint16
repeated(const uint *w, const uint d)
{
    if (d == 1)
        return *w;
    if (d == 2)
        return as_uint16((ulong8)(*(const ulong *)w));
    const uint4 q = *(const uint4 *)w;
    return (uint16)(q, q, q, q);
}

/* What a format's zero takes off the sums with x. */
static inline void
begin_sums(struct x_unit *x, int zero, const uint vectors)
{
#if BLOCKS
    for (uint s = 0; s < STRETCHES; s++)
        for (uint n = 0; n < vectors; n++)
            x->begin[s][n] = x->less[s][n] * zero;
#endif
}

/* What the integers of a row over stretch s begin with. */
__attribute__((always_inline)) static inline int16
begin_with(const struct rows_unit *w, const struct x_unit *x, uint row, uint s, uint n)
{
#if BLOCKS
    return x->begin[s][n];
#elif HAS_ZP || OFFSET
    return x->less[s][n] * w->zero[row][s];
#else
    return 0;
#endif
}

/* Adds the products of plane p with `d` words from `word` on: step `nth` of a stretch. */
__attribute__((always_inline)) static inline void
add_words(const struct rows_unit *w, const struct x_unit *x, const struct part *part,
          uint word, const uint p, const uint nth, const bool is_last, const uint d,
          struct sums *sums)
{
#pragma unroll
    for (uint r = 0; r < part->rows; r++) {
        const uint16 q = repeated((const uint *)w->words[part->row + r][p] + word, d);
#pragma unroll
        for (uint i = 0; i < part->vectors; i++) {
            const uint n = part->n + i;
            int16 *all = &sums->all[r][i];
#if IN_PAIRS
            *all = add_pairs(*all, as_int16(q), x->words[p][word / d][n]);
#elif IN_SHORTS
            const short32 v = byte_products(q, x->words[0][word / d][n]);
            short32 *some = &sums->some[r][i];
            *some = nth % SHORT_SUMS ? *some + v : v;
            if (nth % SHORT_SUMS + 1 == SHORT_SUMS || is_last)
                *all = add_neighbours(*all, *some);
#else
            *all = add_bytes(*all, q, x->words[X_PLANES - 1][word / d][n]);
#if !X_BYTES
            int16 *high = &sums->high[r][i];
            *high = add_bytes(nth ? *high : (int16)0, q, x->words[0][word / d][n]);
            if (is_last)
                *all += *high << 8;
#endif
#endif
        }
    }
}

/* Adds the products over stretch s. Inlined by force so that the sums are registers. */
__attribute__((always_inline)) static inline void
add_stretch(const struct rows_unit *w, const struct x_unit *x, const struct part *part,
            uint s, const uint d, float16 (*f)[TOKEN_VECTORS])
{
    const uint halves = STRETCHES == 8 ? 1 : 2;
    const uint first = STRETCHES == 8 ? s % 2 * 16 + s / 2 * 4 : s * 4;
    struct sums sums;
#pragma unroll
    for (uint r = 0; r < part->rows; r++)
#pragma unroll
        for (uint i = 0; i < part->vectors; i++)
            sums.all[r][i] = begin_with(w, x, part->row + r, s, part->n + i);
#pragma unroll
    for (uint i = 0; i < halves * 4; i += d)
#pragma unroll
        for (uint p = 0; p < PAIR_PLANES; p++)
            add_words(w, x, part, first + i / 4 * 16 + i % 4, p, i / d,
                      i + d == halves * 4, d, &sums);
#pragma unroll
    for (uint r = 0; r < part->rows; r++) {
        const uint row = part->row + r;
#pragma unroll
        for (uint i = 0; i < part->vectors; i++) {
            const uint n = part->n + i;
            const float16 factor = x->factor[X_BYTES ? s * 4 / STRETCHES : 0][n];
            float16 y = f[row][n];
            y += convert_float16(sums.all[r][i]) * (factor * w->scale[row][s]);
            if (MINIMUMS)
                y -= x->sums[s][n] * w->minimum[row][s];
            f[row][n] = y;
        }
    }
}

/* The products of 16 rows from `first` on. Without products of four bytes many rows share the words
 * of one vector of tokens. */
__attribute__((always_inline)) static inline void
add_rows(const struct rows_unit *w, const struct x_unit *x, uint first, const uint vectors,
         const uint d, float16 (*f)[TOKEN_VECTORS])
{
    const uint at_once = BYTE_DOTS ? vectors : 1;
    const uint rows = at_once > 1 ? MOST_ROWS / 2 : MOST_ROWS;
#pragma unroll 1
    for (uint r = first; r < first + 16; r += rows) {
#pragma unroll 1
        for (uint s = 0; s < STRETCHES; s++) {
#pragma unroll 1
            for (uint n = 0; n < vectors; n += at_once) {
                const struct part part = {r, n, rows, at_once};
                add_stretch(w, x, &part, s, d, f);
            }
        }
    }
}
