/* SPDX-License-Identifier: Apache-2.0
 *
 * Combines an expert's two products, gate and up: biases, clamps, activation, multiplication.
 *
 *   CLAMPED  1: gate is limited to at most `limit`, up to -limit … limit
 *   UP_ADD   bits of the float that is then added to up
 *   BIASED   1: gate, up, or both have a bias for each row; a missing one is NULL
 *   FACTORED 1: the result is multiplied by factor [E][I]
 *   OUT_PLANES, OUT_GROUP  PLANES and GROUP of the down projection: kernels for many tokens write h
 *            in its order
 *
 * Gate and up are two weights, or views of one: its halves, or every other row (runtime/weight.h).
 * So are their biases: that of expert e and row i is at e * steps.x + i * steps.y, plus steps.z for
 * gate, plus steps.w for up.
 */
#include "activation.h"
#include "weights.h"

#ifndef CLAMPED
#define CLAMPED 0
#endif
#ifndef UP_ADD
#define UP_ADD 0
#endif
#ifndef BIASED
#define BIASED 0
#endif
#ifndef FACTORED
#define FACTORED 0
#endif
#ifndef OUT_PLANES
#define OUT_PLANES 8
#define OUT_GROUP  128
#endif

#define GATE_UP_PARAMETERS                                                               \
    WEIGHT_PARAMETERS(gate), WEIGHT_PARAMETERS(up), __global const float *bias_gate,     \
        __global const float *bias_up, uint4 bias_steps, __global const float *factor,   \
        float beta, float limit

struct gate_up {
    __global const float *bias_gate, *bias_up;
    uint4 steps;
    __global const float *factor;
    float beta, limit;
    uint i_count;
};
/* A struct gate_up from the parameters of a kernel; i_count is I. */
#define GATE_UP                                                                          \
    ((struct gate_up){bias_gate, bias_up, bias_steps, factor, beta, limit, i_count})

static inline float
gate_bias(const struct gate_up *g, ulong expert, uint i)
{
    const ulong at = expert * g->steps.x + i * g->steps.y + g->steps.z;
    return BIASED && g->bias_gate ? g->bias_gate[at] : 0.0f;
}

static inline float
up_bias(const struct gate_up *g, ulong expert, uint i)
{
    const ulong at = expert * g->steps.x + i * g->steps.y + g->steps.w;
    return BIASED && g->bias_up ? g->bias_up[at] : 0.0f;
}

static inline float
factor_at(const struct gate_up *g, ulong expert, uint i)
{
    return FACTORED ? g->factor[expert * g->i_count + i] : 1.0f;
}

static inline REAL
activated(const struct gate_up *g, REAL gate, REAL up)
{
#if CLAMPED
    gate = fmin(gate, g->limit);
    up = clamp(up, -g->limit, g->limit);
#endif
#if UP_ADD
    up += as_float((uint)UP_ADD);
#endif
    return gated(gate, up, g->beta);
}

/* Returns element i of an expert's h from its products gate and up (for 16 tokens if REAL is
 * float16). */
static inline REAL
gate_times_up(const struct gate_up *g, ulong expert, uint i, REAL gate, REAL up)
{
    return factor_at(g, expert, i) *
           activated(g, gate + gate_bias(g, expert, i), up + up_bias(g, expert, i));
}

#ifdef REAL_IS_16
/* Returns elements i ... i + 15 of h of one token; those behind the last element use its biases and
 * factor. */
static inline float16
gate_times_up16(const struct gate_up *g, ulong expert, uint i, float16 gate, float16 up)
{
    float of_gate[16], of_up[16], factor[16];
    if (!BIASED && !FACTORED)
        return activated(g, gate, up);
    for (uint r = 0; r < 16; r++) {
        const uint at = min(i + r, g->i_count - 1);
        of_gate[r] = gate_bias(g, expert, at);
        of_up[r] = up_bias(g, expert, at);
        factor[r] = factor_at(g, expert, at);
    }
    return vload16(0, factor) *
           activated(g, gate + vload16(0, of_gate), up + vload16(0, of_up));
}
#endif
