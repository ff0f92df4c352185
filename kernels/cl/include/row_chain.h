/* SPDX-License-Identifier: Apache-2.0
 *
 * A chain of row-wise steps (runtime/reference/reference_row_chain.h), as the host's build options
 * describe it:
 *
 *   ROW      elements of a row
 *   CHAIN    the steps in order, by macros that each kernel defines:
 *              IN(k)              operand k is read
 *              SCALE(k, a)        scale k is 1 / sqrt(mean(a^2) + epsilon k)
 *              NORM(s, a, b, k)   step s = a * scale k * b
 *              ADD(s, a, b)   MUL(s, a, b)   RND(s, a)
 *              OUT(k, s)          step s is result k
 *            where a and b are X(k) an operand, S(k) a step, C(k) a constant row, ONE(k) a
 *            constant number, 1.0f
 *   SCALES                 number of scales
 *   N_EPSILONS, EPSILONS   their epsilons; one unused epsilon if there is no scale
 *   X0 ... Y0 ...      element types of operands and results
 */
#include "round_bf16.h"
#include "types.h"

#ifndef ROW
#define ROW 256
#endif
#ifndef CHAIN /* default: a residual sum, then a norm of it */
#define SCALES     1
#define N_EPSILONS 1
#define EPSILONS   1e-6f
#define CHAIN                                                                            \
    IN(0)                                                                                \
    IN(1) ADD(0, X(0), X(1)) OUT(0, 0) SCALE(0, S(0)) NORM(1, S(0), C(0), 0) OUT(1, 1)
#endif
#ifndef X0
#define X0 f32
#endif
#ifndef X1
#define X1 f32
#endif
#ifndef X2
#define X2 f32
#endif
#ifndef X3
#define X3 f32
#endif
#ifndef Y0
#define Y0 f32
#endif
#ifndef Y1
#define Y1 f32
#endif
#ifndef Y2
#define Y2 f32
#endif
#ifndef Y3
#define Y3 f32
#endif

/* Parameters; operands, constants and results that the chain does not have are NULL. */
#define ROW_CHAIN_PARAMETERS                                                             \
    __global const STORAGE(X0) * x0, __global const STORAGE(X1) * x1,                    \
        __global const STORAGE(X2) * x2, __global const STORAGE(X3) * x3,                \
        __global const float *c0, __global const float *c1, __global const float *c2,    \
        __global const float *c3, __global const float *c4, __global const float *c5,    \
        __global const float *c6, __global const float *c7, __global STORAGE(Y0) * y0,   \
        __global STORAGE(Y1) * y1, __global STORAGE(Y2) * y2, __global STORAGE(Y3) * y3
/* The results as prepared rows (prepared.h); NULL: not written. */
#define ROW_CHAIN_PREPARED                                                               \
    __global int *prepared0, __global int *prepared1, __global int *prepared2,           \
        __global int *prepared3
#define ROW_CHAIN_ARGUMENTS x0, x1, x2, x3, c0, c1, c2, c3, c4, c5, c6, c7, y0, y1, y2, y3

__constant float epsilons[] = {EPSILONS};
typedef char
    an_epsilon_for_each_scale[sizeof(epsilons) == sizeof(float) * N_EPSILONS ? 1 : -1];
typedef char as_many_epsilons_as_scales[N_EPSILONS == (SCALES ? SCALES : 1) ? 1 : -1];

static inline float
scale_of(float sum_of_squares, int k)
{
    return 1.0f / sqrt(sum_of_squares / ROW + epsilons[k]);
}
