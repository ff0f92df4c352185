/* SPDX-License-Identifier: Apache-2.0
 *
 * Q8_0: { f16 d; i8 qs[32] }. A weight is d q.
 */
#ifdef FORMAT_q8_0
#define COLUMNS_q8_0 32
#define BYTES_q8_0   34
#define UNIT_q8_0 1
#define ZERO_q8_0 128

static inline char16
q8_0_integers(__global const uchar *block, uint i, float2 *f)
{
    *f = (float2)(block_half(block), 0.0f);
    return as_char16(block_bytes16(block + 2 + 16 * i));
}
VALUES_OF_INTEGERS(q8_0)

#ifdef UNITS
static inline void
q8_0_unit(__global const uchar *p, uint i, struct unit *u)
{
    put_factors(block_halves(p, 34), u);
    u->q[0] = quads(p + 2, 34) ^ 0x80808080u;
    u->q[1] = quads(p + 18, 34) ^ 0x80808080u;
}
#endif
#endif
