/* SPDX-License-Identifier: Apache-2.0
 *
 * The scales of Q4_K and Q5_K: { f16 d, dmin; u8 scales[12] }, 6 bits for the scale and for the
 * minimum of each of 8 sub-blocks.
 */

/* Returns d scale and dmin minimum of sub-block j. */
static inline float2
k_factors(__global const uchar *block, uint j)
{
    const uint a = block[4 + j % 4], b = block[8 + j % 4], rest = block[12 + j % 4];
    const uint scale = j < 4 ? a & 63 : (rest & 15) | a >> 6 << 4;
    const uint minimum = j < 4 ? b & 63 : rest >> 4 | b >> 6 << 4;
    return (float2)(block_half(block) * scale, block_half(block + 2) * minimum);
}

#ifdef UNITS
/* Sets scales, minimums and integer scales of a unit: sub-blocks 4 i … 4 i + 3. */
static inline void
k_unit_factors(__global const uchar *block, uint i, struct unit *u)
{
    const uint4 s = loose4(block);
    const uint4 shift = (uint4)(0, 0, 0, 4);
    const uint4 low = (uint4)(0x3f3f3f3fu, 0x3f3f3f3fu, 0x0f0f0f0fu, 0x0f0f0f0fu);
    /* The words of q: scales 0 … 3, minimums 0 … 3, scales 4 … 7, minimums 4 … 7; of the last two,
     * two high bits are stored elsewhere. */
    const uint4 q = (s.yzww >> shift & low) |
                    (s.xxyz >> 2u & (uint4)(0, 0, 0x30303030u, 0x30303030u));
    const float4 d = half_bits4(as_ushort4((uint2)(s.x, s.x)));
    const uchar16 bytes = as_uchar16(q);
    u->d = d.xy;
    u->multiplier = convert_short8(i ? SPREAD2(bytes, 8) : SPREAD2(bytes, 0));
    u->taken = convert_short8(i ? SPREAD2(bytes, 12) : SPREAD2(bytes, 4));
    const float16 v = convert_float16(bytes) *
                      (float16)(d.xxxx, d.yyyy, d.xxxx, d.yyyy);
    u->factor[0] = u->factor[1] = i ? SPREAD4(v, 8) : SPREAD4(v, 0);
    u->minimum = i ? SPREAD2(v, 12) : SPREAD2(v, 4);
}
#endif
