/* SPDX-License-Identifier: Apache-2.0
 *
 * Transposes scales or zero points of a weight: rows become innermost, as oneDNN reads them:
 *
 *     out[e][g][n] = in[e][n][g]
 *
 * They are BITS wide. A work-item copies one, or two neighbours of 4 bits; global size {N, G, E},
 * {N / 2, G, E} with 4 bits. Bytes lie at any address.
 */

#ifndef BITS
#define BITS 16
#endif

#if BITS == 4
static inline uchar
nibble(__global const uchar *p, ulong i)
{
    return (p[i >> 1] >> (4 * (i & 1))) & 15;
}
#endif

__kernel void
weight_turn_ref(__global const uchar *in, __global uchar *out)
{
    const ulong n = get_global_id(0), g = get_global_id(1), e = get_global_id(2);
    const ulong n_count = get_global_size(0), groups = get_global_size(1);
    const ulong row = e * n_count + n, to = (e * groups + g) * n_count + n;
#if BITS == 4
    out[to] = nibble(in, 2 * row * groups + g) |
              (uchar)(nibble(in, (2 * row + 1) * groups + g) << 4);
#else
    for (uint b = 0; b < BITS / 8; b++)
        out[to * (BITS / 8) + b] = in[(row * groups + g) * (BITS / 8) + b];
#endif
}
