/* SPDX-License-Identifier: Apache-2.0
 *
 *     y = f(a, b, c)          floats; arguments as in eltwise_ref
 *
 * The innermost dimension is contiguous or broadcast (stride 1 or 0) in every operand: same shapes,
 * scalars, a row over all rows. A work-item computes a span of pieces of PIECE elements of a row,
 * 16 at a time.
 */
#include "span.h"
#include "types.h"

#ifndef A
#define A f32
#define B f32
#define Y f32
#endif
#ifndef PIECE
#define PIECE 1024 /* elements; a multiple of 16 */
#endif

#define VALUE float16
#include "eltwise_functions.h"

#ifdef B
#define HAS_B 1
#else
#define HAS_B 0
#define B f32
#endif
#ifdef C
#define HAS_C 1
#else
#define HAS_C 0
#define C f32
#endif

#define READ_TAIL(T) PASTE(tail_, T)

static float16
tail_f32(__global const float *p, long at, int n)
{
    float v[16] = {0};
    for (int i = 0; i < n; i++)
        v[i] = p[at + i];
    return vload16(0, v);
}

static float16
tail_f16(__global const half *p, long at, int n)
{
    float v[16] = {0};
    for (int i = 0; i < n; i++)
        v[i] = vload_half(at + i, p);
    return vload16(0, v);
}

/* Reads 16 elements from p + at on, or only the first n of them; stride 0: one element 16 times. */
#define READ(T, p, at, stride, n)                                                        \
    ((stride) == 0 ? (float16)(LOAD(T, p, at))                                           \
     : (n) == 16   ? LOAD16(T, p, at)                                                    \
                   : READ_TAIL(T)(p, at, n))

static void
write_tail(__global STORAGE(Y) *y, long at, int n, float16 v)
{
    float out[16];
    vstore16(v, 0, out);
    for (int i = 0; i < n; i++)
        STORE(Y, y, at + i, out[i]);
}

__kernel void
eltwise_flat_vec(__global const STORAGE(A) *a, __global const STORAGE(B) *b,
                 __global const STORAGE(C) *c, __global STORAGE(Y) *y, ulong n0, ulong n1,
                 ulong n2, ulong n3, long a_at, long a0, long a1, long a2, long a3,
                 long b_at, long b0, long b1, long b2, long b3, long c_at, long c0,
                 long c1, long c2, long c3, long y_at, float p0, float p1)
{
    const ulong pieces = (n3 + PIECE - 1) / PIECE, units = n0 * n1 * n2 * pieces;
    for (ulong u = span_begin(units); u < span_end(units); u++) {
        const ulong row = u / pieces, first = u % pieces * PIECE;
        const ulong end = min(first + PIECE, n3);
        const long i2 = row % n2, i1 = row / n2 % n1, i0 = row / n2 / n1;
        const long ra = a_at + i0 * a0 + i1 * a1 + i2 * a2;
        const long rb = b_at + i0 * b0 + i1 * b1 + i2 * b2;
        const long rc = c_at + i0 * c0 + i1 * c1 + i2 * c2;
        for (ulong i = first; i < end; i += 16) {
            const int n = min(end - i, (ulong)16);
            const float16 va = READ(A, a, ra + i * a3, a3, n);
            const float16 vb = HAS_B ? READ(B, b, rb + i * b3, b3, n) : 0.0f;
            const float16 vc = HAS_C ? READ(C, c, rc + i * c3, c3, n) : 0.0f;
            const float16 v = APPLY(va, vb, vc);
            if (n == 16)
                STORE16(Y, y, y_at + row * n3 + i, v);
            else
                write_tail(y, y_at + row * n3 + i, n, v);
        }
    }
}
