/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiles of 16 tokens in steps of 16 columns, as halves: operand a of matrix_mad.h. Operand b is
 * weights (block_steps.h, element_steps.h).
 *
 *     [super-block of 256 columns][18 steps][16 tokens][16 slots]                  SG 16
 *     [super-block of 256 columns][18 steps][2][8 pairs of slots][8 tokens][2]     SG 8
 *
 * SG 16: a lane loads one slot of 8 tokens, by a block read. SG 8: a lane loads two neighbouring
 * slots of 8 tokens, as eight words, which costs fewer instructions for addresses.
 *
 * Steps 0 to 15 have the columns. Two neighbouring slots are the two columns that one mask leaves
 * of a word of weights, half a word apart. The number of elements in a word (`word`) gives the
 * order:
 *
 *     2  0 1 2 3 …              halves
 *     4  0 2 1 3, 4 6 5 7 …     bytes; also weights in blocks: one order serves all formats whose
 *                               numbers are in neighbouring bytes or nibbles
 *     8  0 4 2 6, 8 12 10 14 …  nibbles: a step has the even columns of 32, the next one the odd
 *        1 5 3 7, 9 13 11 15 …  ones, because these have another offset (element_steps.h)
 *
 * Only weights in blocks read steps 16 and 17. Step 16 has the sums X_j of 32 columns, by which
 * minimums of weights are subtracted: slot j has X_j / 32 as a half, which cannot overflow; slot
 * 8 + j has 256 times the rounding error of that half. Step 17 has the sums of the last 16 of the
 * 32 columns in the same way, for weights with a minimum per 16 columns. Sums of columns behind the
 * last are 0; these columns themselves are 0, or are not read.
 */
#define SUPER_K     256
#define SUPER_STEPS 18
#define SUM_STEP    16
#define STEP_HALVES (16 * 16) /* halves of a step of a tile */
#define SUM_PARTS   256  /* the coefficient of slot j is this times that of slot 8 + j */
#define SUM_SCALE   8.0f /* the sum of both products is this times the product with X_j */

static inline uint
supers_of(uint k_count)
{
    return (k_count + SUPER_K - 1) / SUPER_K;
}

/* Returns the halves of a tile. */
static inline uint
tile_halves(uint k_count)
{
    return supers_of(k_count) * (SUPER_STEPS * STEP_HALVES);
}

/* Returns where a step begins, in halves. */
static inline uint
step_place(uint super, uint step)
{
    return (super * SUPER_STEPS + step) * STEP_HALVES;
}

/* Returns where slots 2 c and 2 c + 1 of a token of the tile are, in words. */
static inline uint
slots_place(uint super, uint step, uint token, uint c)
{
    const uint first = step_place(super, step) / 2;
    return first + (SG == 8 ? token / 8 * 64 + c * 8 + token % 8 : token * 8 + c);
}

/* Returns where a slot is, in halves. */
static inline uint
slot_place(uint super, uint step, uint token, uint slot)
{
    return 2 * slots_place(super, step, token, slot / 2) + slot % 2;
}

/* Returns where column k of a token is, in halves. */
static inline uint
column_place(uint k, uint token, const uint word)
{
    const uint second = k / (word / 2) % 2;                        /* 1: the second of its pair */
    const uint pair = k % 32 / word * (word / 2) + k % (word / 2); /* within 32 columns */
    const uint in_step = word == 8 ? pair / 2 : pair % 8;
    return slot_place(k / SUPER_K,
                      k % SUPER_K / 32 * 2 + (word == 8 ? pair % 2 : pair / 8), token,
                      2 * in_step + second);
}

/* Writes a sum of columns 32 block … to its two slots of a step. */
static inline void
put_sum(__global ushort *tile, uint step, uint token, uint block, float sum)
{
    const float mean = sum / 32;
    const uint high = two_halves(mean, 0.0f);
    tile[slot_place(block / 8, step, token, block % 8)] = (ushort)high;
    tile[slot_place(block / 8, step, token, 8 + block % 8)] =
        (ushort)two_halves((mean - halves(high).x) * SUM_PARTS, 0.0f);
}
