/* SPDX-License-Identifier: Apache-2.0
 *
 * The rotation of heads that are cached as i8 or u4: each block of B neighbouring elements becomes
 *
 *     y = H x / sqrt(B)        H[i][j] = -1 if i & j has an odd number of set bits, else 1
 *
 * the Walsh-Hadamard transform (xm_ref_rotate). It is its own inverse and preserves dot products: q
 * and K are rotated alike, and a sum of rotated values is rotated back. It spreads outliers over
 * all elements of a block, so that quantisation steps may be small.
 *
 * Every implementation adds in the same order, strides 1, 2, 4 …, and multiplies last, so that all
 * results are bit-identical.
 */
#define ROOT_OF(b)                                                                       \
    ((b) == 16   ? 0.25f                                                                 \
     : (b) == 32 ? 0.17677669529663689f                                                  \
     : (b) == 64 ? 0.125f                                                                \
                 : 0.088388347648318447f) /* 1 / sqrt(b) */

/* Rotates n elements in blocks of b. */
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

/* Applies strides 1, 2, 4 to 8 elements; rotate_16, also stride 8, to 16 elements. No factor. */
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

/* Like rotate_elements, with vectors; n is whole blocks. */
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
