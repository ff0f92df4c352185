/* SPDX-License-Identifier: Apache-2.0
 *
 * The scales of Q4_K and Q5_K: { f16 d, dmin; u8 scales[12] }, 6 bits for the scale and for the
 * minimum of each of 8 sub-blocks.
 */

/* d scale and dmin minimum of sub-block j. */
static inline float2
k_factors(__global const uchar *block, uint j)
{
    const uint a = block[4 + j % 4], b = block[8 + j % 4], rest = block[12 + j % 4];
    const uint scale = j < 4 ? a & 63 : (rest & 15) | a >> 6 << 4;
    const uint minimum = j < 4 ? b & 63 : rest >> 4 | b >> 6 << 4;
    return (float2)(block_half(block) * scale, block_half(block + 2) * minimum);
}
