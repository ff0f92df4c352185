/* SPDX-License-Identifier: Apache-2.0
 *
 * Q4_K: { f16 d, dmin; u8 scales[12]; u8 qs[128] }. A weight is d scale q - dmin minimum;
 * sub-blocks of 32 columns share a scale and a minimum (k_scales.h). The low nibbles of 32 bytes
 * are one sub-block, the high nibbles the next.
 */
#ifdef FORMAT_q4_k
#define COLUMNS_q4_k  256
#define BYTES_q4_k    144
#define UNIT_q4_k 1
#define ZERO_q4_k 0
#define BITS_q4_k 4
#define MINIMUMS_q4_k 1

static inline char16
q4_k_integers(__global const uchar *block, uint i, float2 *f)
{
    *f = k_factors(block, i / 2);
    const uchar16 q = block_bytes16(block + 16 + i / 4 * 32 + i % 2 * 16);
    return as_char16(q >> (uchar)(i % 4 / 2 * 4) & (uchar)15);
}
VALUES_OF_INTEGERS(q4_k)

#ifdef UNITS
static inline void
q4_k_unit(__global const uchar *p, uint i, struct unit *u)
{
    const uint16 q = load_whole(p + 16 + 64 * i);
    const uint16 shifted = q >> 4;
    k_unit_factors(p, i, u);
    u->q[0] = QUARTERS_OF(q, shifted, 0, 4, 2, 6) & 0x0f0f0f0fu;
    u->q[1] = QUARTERS_OF(q, shifted, 1, 5, 3, 7) & 0x0f0f0f0fu;
}
#endif
#endif
