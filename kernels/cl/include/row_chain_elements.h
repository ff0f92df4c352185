/* SPDX-License-Identifier: Apache-2.0
 *
 * Row chains for kernels that keep only the scales in registers: they pass over a row once for each
 * scale and once more for the results, and each time recompute all earlier steps, mostly from the
 * first-level cache. Rows may have any length.
 *
 * The kernel defines REAL, READ and WRITE: one element at a time, or 16.
 */
#include "row_chain.h"

#define IN(k)             const REAL in##k = READ(X##k, x##k, row + i);
#define X(k)              in##k
#define S(k)              s##k
#define C(k)              READ(f32, c##k, i)
#define ONE(k)            c##k[0]
#define ADD(to, a, b)     const REAL s##to = (a) + (b);
#define MUL(to, a, b)     const REAL s##to = (a) * (b);
#define RND(to, a)        const REAL s##to = ROUND_BF16(REAL, a);
#define NORM(to, a, b, k) const REAL s##to = (a)*scale[k] * (b);
#define SCALE(k, a)                                                                      \
    if (turn == k)                                                                       \
        return a;
#define OUT(k, step)                                                                     \
    if (turn == SCALES)                                                                  \
        WRITE(Y##k, y##k, row + i, s##step);

/* Computes element i, or 16 from i on. On turn k < SCALES it returns the operand of scale k; on the
 * last turn it writes the results. */
static inline REAL
elements(ROW_CHAIN_PARAMETERS, ulong row, int i, int turn, const float *scale)
{
    CHAIN
    return 0.0f;
}
