/* SPDX-License-Identifier: Apache-2.0
 *
 * Gate and up of an expert: where their rows stand, and what becomes of the two products.
 *
 *   GATE_UP  enum xm_gate_up's numbers: 0 two weights of I rows; else one of 2 I rows, 1 gate in
 *            the even rows, 2 gate in the first I rows, 3 and 4 the same with up first
 *   CLAMPED  1: gate is at most limit, up within -limit and limit
 *   UP_ADD   bits of the float that is then added to up
 *   BIASED   1: a bias is added to each row of that weight
 *
 * Kernels read gate and up through two sets of pointers; a weight that holds both is bound twice.
 */
#include "activation.h"

#ifndef GATE_UP
#define GATE_UP 0
#endif
#ifndef CLAMPED
#define CLAMPED 0
#endif
#ifndef UP_ADD
#define UP_ADD 0
#endif
#ifndef BIASED
#define BIASED 0
#endif

#define ROW_STEP             (GATE_UP == 1 || GATE_UP == 3 ? 2 : 1) /* rows from i to i + 1 */
#define EXPERT_ROWS(i_count) ((GATE_UP ? 2 : 1) * (i_count))        /* of a weight */

/* The first row of gate and of up; that of i is i * ROW_STEP behind. */
struct gate_up_rows {
    ulong gate, up;
};

static inline struct gate_up_rows
rows_of_expert(ulong expert, uint i_count)
{
    const ulong first = expert * EXPERT_ROWS(i_count);
    const struct gate_up_rows rows = {first + (GATE_UP == 3   ? 1
                                               : GATE_UP == 4 ? i_count
                                                              : 0),
                                      first + (GATE_UP == 1   ? 1
                                               : GATE_UP == 2 ? i_count
                                                              : 0)};
    return rows;
}

/* The last of the rows of gate or up that begin with `first`. */
static inline ulong
last_row(ulong first, uint i_count)
{
    return first + (i_count - 1) * ROW_STEP;
}

static inline float
bias_of(__global const float *bias, ulong row)
{
    return BIASED ? bias[row] : 0.0f;
}

static inline REAL
gate_times_up(REAL gate, REAL up, float beta, float limit)
{
#if CLAMPED
    gate = fmin(gate, limit);
    up = clamp(up, -limit, limit);
#endif
#if UP_ADD
    up += as_float((uint)UP_ADD);
#endif
    return gated(gate, up, beta);
}
