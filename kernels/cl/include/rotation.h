/* SPDX-License-Identifier: Apache-2.0
 *
 * The rotation of heads that are cached in few bits: each block of B neighbours of a row becomes
 *
 *     y = H x / sqrt(B)        H[i][j] = -1 where i & j has an odd number of bits, else 1
 *
 * the Walsh-Hadamard transform (xm_ref_rotate). It is its own inverse and keeps products of two
 * rows: q and K are rotated alike, and a sum of rotated values is rotated back. What one element
 * had of a row's power all of them have then, so that steps may be small.
 *
 * Every implementation adds in the same order, strides 1, 2, 4 …, and multiplies last: results are
 * the same bits.
 */
#define ROOT_OF(b)                                                                       \
    ((b) == 16   ? 0.25f                                                                 \
     : (b) == 32 ? 0.17677669529663689f                                                  \
     : (b) == 64 ? 0.125f                                                                \
                 : 0.088388347648318447f) /* 1 / sqrt(b) */

/* n elements, B a block. */
static inline void
rotate_elements(float *y, int n, int b)
{
    for (int step = 1; step < b; step *= 2)
        for (int i = 0; i < n; i++)
            if (!(i & step)) {
                const float low = y[i], high = y[i + step];
                y[i] = low + high;
                y[i + step] = low - high;
            }
    for (int i = 0; b > 1 && i < n; i++)
        y[i] *= ROOT_OF(b);
}

/* The strides 1, 2, 4 of 8 neighbours, and 8 of 16. */
static inline float8
rotate_8(float8 v)
{
    float8 w;
    w.even = v.even + v.odd;
    w.odd = v.even - v.odd;
    v.s0145 = w.s0145 + w.s2367;
    v.s2367 = w.s0145 - w.s2367;
    w.lo = v.lo + v.hi;
    w.hi = v.lo - v.hi;
    return w;
}

static inline float16
rotate_16(float16 v)
{
    const float8 low = rotate_8(v.lo), high = rotate_8(v.hi);
    return (float16)(low + high, low - high);
}

/* The same as rotate_elements, in vectors; n is whole blocks. */
static inline void
rotate_vectors(float *y, int n, int b)
{
    if (b == 1)
        return;
    for (int i = 0; i < n; i += 16)
        vstore16(rotate_16(vload16(0, y + i)), 0, y + i);
    for (int step = 16; step < b; step *= 2)
        for (int i = 0; i < n; i += 16)
            if (!(i & step)) {
                const float16 low = vload16(0, y + i), high = vload16(0, y + i + step);
                vstore16(low + high, 0, y + i);
                vstore16(low - high, 0, y + i + step);
            }
    for (int i = 0; i < n; i += 16)
        vstore16(vload16(0, y + i) * ROOT_OF(b), 0, y + i);
}
