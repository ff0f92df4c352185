/* SPDX-License-Identifier: Apache-2.0
 *
 * A unit of weights and one of activations as the tile of byte_gemm.h multiplies them. There are
 * three ways, depending on the processor's instructions:
 *
 *     BYTE_DOTS  a word of four weight bytes times a word of x, whose integers are one byte, or two
 *                bytes in two planes
 *     IN_SHORTS  the same, with sums of 16 bits (shorts.h): x of 8 bits and small weights
 *     IN_PAIRS   products of pairs of 16-bit integers: bytes 0 and 2 of each word in one plane, 1
 *                and 3 in the other
 */
#define X_PLANES      (X_BYTES ? 1 : 2) /* planes of x in memory */
#define X_UNIT_WORDS  (X_PLANES * 32)
#define X_FACTORS     (X_BYTES ? 4 : 1) /* scales of a unit of x */
#define STRETCHES     (FACTOR_K == 16 ? 8 : 4)
#define TOKEN_VECTORS (MOST_TOKENS / 16)
#define IN_PAIRS      (!BYTE_DOTS && !IN_SHORTS)
#define PAIR_PLANES   (IN_PAIRS ? 2 : 1)

/* A unit of x of all tokens; a token has as many lanes as a vector has words of it. */
struct x_unit {
    int16 words[IN_PAIRS ? 2 : X_PLANES][32][TOKEN_VECTORS];
    /* Minus the sums of x's integers. With INTEGER_FACTORS a word has the sums of two times 16
     * columns; unused if there are minimums. */
    int16 less[STRETCHES][TOKEN_VECTORS];
    /* what sums begin with: a format's zero point times `less` */
    int16 begin[STRETCHES][TOKEN_VECTORS];
    float16 factor[X_FACTORS][TOKEN_VECTORS], sums[STRETCHES][TOKEN_VECTORS];
};

/* A unit of all rows of the tile. */
struct rows_unit {
    uint16 words[TILE_ROWS][PAIR_PLANES][2];
    float scale[TILE_ROWS][STRETCHES], minimum[TILE_ROWS][STRETCHES];
    int zero[TILE_ROWS][STRETCHES];
#if INTEGER_FACTORS
    /* multiplier: the integer scale of each 16 columns; with IN_SHORTS in both halves of a word.
     * taken: pairs of scale times zero point, if there are no minimums. scale[0] is for all
     * columns. */
    uint multiplier[TILE_ROWS][8], taken[TILE_ROWS][4];
#endif
};

static inline void
put_words(const struct unit *u, uint16 (*out)[2])
{
    for (uint h = 0; h < 2; h++)
        for (uint p = 0; p < PAIR_PLANES; p++)
            out[p][h] = IN_PAIRS ? as_uint16(byte_pairs(u->q[h], p)) : u->q[h];
}
