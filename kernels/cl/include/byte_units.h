/* SPDX-License-Identifier: Apache-2.0
 *
 * A unit of weights and one of activations as the tile of byte_gemm.h multiplies them. There are
 * three ways, by what the processor has:
 *
 *     BYTE_DOTS  a word of four bytes of weights meets one of x, whose integers have a byte, or two
 *                bytes in two planes
 *     IN_SHORTS  the same, with sums of 16 bits (shorts.h): x of 8 bits and small weights
 *     IN_PAIRS   integers of 16 bits meet in pairs: bytes 0 and 2 of each word in one plane, 1
 *                and 3 in the other
 */
#define X_PLANES      (X_BYTES ? 1 : 2) /* planes of x in memory */
#define X_UNIT_WORDS  (X_PLANES * 32)
#define X_FACTORS     (X_BYTES ? 4 : 1) /* of a unit of x */
#define STRETCHES     (FACTOR_K == 16 ? 8 : 4)
#define TOKEN_VECTORS (MOST_TOKENS / 16)
#define IN_PAIRS      (!BYTE_DOTS && !IN_SHORTS)
#define PAIR_PLANES   (IN_PAIRS ? 2 : 1)

/* A unit of all tokens; each is in so many lanes as words of it are in a vector. */
struct x_unit {
    int16 words[IN_PAIRS ? 2 : X_PLANES][32][TOKEN_VECTORS];
    /* Minus the sums of integers; with multipliers each pair of 16 columns as a word, and none
     * where there are minimums. */
    int16 less[STRETCHES][TOKEN_VECTORS];
    int16 begin[STRETCHES][TOKEN_VECTORS]; /* what a format's zero takes off sums */
    float16 factor[X_FACTORS][TOKEN_VECTORS], sums[STRETCHES][TOKEN_VECTORS];
};

/* A unit of all rows. */
struct rows_unit {
    uint16 words[TILE_ROWS][PAIR_PLANES][2];
    float scale[TILE_ROWS][STRETCHES], minimum[TILE_ROWS][STRETCHES];
    int zero[TILE_ROWS][STRETCHES];
#if INTEGER_FACTORS
    /* Of each 16 columns, for sums of 16 bits as both halves of a word; of pairs of these, where
     * there are no minimums. scale[0] is of all columns. */
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
