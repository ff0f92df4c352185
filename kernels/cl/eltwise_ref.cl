/* SPDX-License-Identifier: Apache-2.0
 *
 *     y = f(a, b, c)
 *
 * over n0 x n1 x n2 x n3 points; y is dense from y_at on, operands are read by strides (0
 * broadcasts). A work-item computes one element. Absent operands read as zero.
 */
#include "types.h"

#ifndef A
#define A f32
#define B f32
#define Y f32
#endif

#if INTEGER
#define VALUE long
#else
#define VALUE float
#endif
#include "eltwise_functions.h"

#ifdef B
#define LOAD_B(i) (VALUE) LOAD(B, b, i)
#else
#define B u8
#define LOAD_B(i) (VALUE)0
#endif
#ifdef C
#define LOAD_C(i) (VALUE) LOAD(C, c, i)
#else
#define C u8
#define LOAD_C(i) (VALUE)0
#endif

/* Floats are converted to a saturated long first, whatever the integer's width. */
#if Y_IS_FLOAT
#define RESULT(v) (float)(v)
#elif INTEGER
#define RESULT(v) (v)
#elif Y_IS_BOOLEAN
#define RESULT(v) ((v) != 0.0f)
#else
#define RESULT(v) convert_long_sat(v)
#endif

__kernel void
eltwise_ref(__global const STORAGE(A) *a, __global const STORAGE(B) *b,
            __global const STORAGE(C) *c, __global STORAGE(Y) *y, ulong n0, ulong n1,
            ulong n2, ulong n3, long a_at, long a0, long a1, long a2, long a3, long b_at,
            long b0, long b1, long b2, long b3, long c_at, long c0, long c1, long c2,
            long c3, long y_at, float p0, float p1)
{
    const ulong at = get_global_id(0);
    const long i3 = at % n3, i2 = at / n3 % n2, i1 = at / n3 / n2 % n1;
    const long i0 = at / n3 / n2 / n1;
    const VALUE va = LOAD(A, a, a_at + i0 * a0 + i1 * a1 + i2 * a2 + i3 * a3);
    const VALUE vb = LOAD_B(b_at + i0 * b0 + i1 * b1 + i2 * b2 + i3 * b3);
    const VALUE vc = LOAD_C(c_at + i0 * c0 + i1 * c1 + i2 * c2 + i3 * c3);
    const VALUE v = APPLY(va, vb, vc);
    STORE(Y, y, y_at + at, RESULT(v));
}
