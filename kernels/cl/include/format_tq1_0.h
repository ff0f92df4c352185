/* SPDX-License-Identifier: Apache-2.0
 *
 * TQ1_0: { u8 qs[48], qh[4]; f16 d }. A weight is d (q - 1) with q of 0, 1, 2. A byte is a number
 * of 5 base-3 digits times 256 / 243, rounded up: digit n (0 is the highest) is 3 / 256 times the
 * low 8 bits of 3^n times the byte.
 * Columns 32 n + l are digit n of qs[l], 160 + 16 n + l of qs[32 + l], 240 + 4 n + l of qh[l].
 */
#ifdef FORMAT_tq1_0
#define COLUMNS_tq1_0 256
#define BYTES_tq1_0   54
#define SCALED_tq1_0 1

/* Returns the highest base-3 digit of each byte times `power`, as bytes in words of four. */
static inline uint4
tq1_0_digits(uint4 bytes, uint4 power)
{
    const uint4 even = (bytes & 0x00ff00ffu) * power & 0x00ff00ffu;
    const uint4 odd = (bytes >> 8 & 0x00ff00ffu) * power & 0x00ff00ffu;
    return (even * 3 >> 8 & 0x00030003u) | (odd * 3 & 0x03000300u);
}

static inline char16
tq1_0_numbers(__global const uchar *block, uint i)
{
    const uint n = i < 10 ? i / 2 : i - 10, at = i < 10 ? i % 2 * 16 : 32;
    const uchar power = (n & 1 ? 3 : 1) * (n & 2 ? 9 : 1) * (n & 4 ? 81 : 1);
#ifdef SG /* compilers of GPUs process each byte of a vector alone */
    const uint4 q = i < 15 ? as_uint4(block_bytes16(block + at)) : block_uint(block + 48);
    return less_one(as_uchar16(
        tq1_0_digits(q, i < 15 ? (uint4)power : (uint4)(1, 3, 9, 27))));
#else
    const uchar4 h = vload4(0, block + 48);
    const uchar16 q = i < 15 ? block_bytes16(block + at) * power
                             : (uchar16)(h, h * (uchar)3, h * (uchar)9, h * (uchar)27);
    return (char)-1 - (q > (uchar)85) - (q > (uchar)170);
#endif
}

static inline uint
tq1_0_scale(__global const uchar *block, uint i)
{
    return 1;
}

static inline float
tq1_0_factor(__global const uchar *block)
{
    return block_half(block + 52);
}

INTEGERS_OF_SCALED(tq1_0)
#endif
