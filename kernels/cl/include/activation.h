/* SPDX-License-Identifier: Apache-2.0
 *
 * The gated activation of an expert, and what it is made of.
 *
 *   ACT  0 swish x * sigmoid(beta x), 1 gelu (tanh form), 2 gelu (erf form); the numbers are
 *        enum xm_activation's
 *   REAL float, or float16 for 16 lanes at once
 */
#ifndef REAL
#define REAL float
#endif
#ifndef ACT
#define ACT 0
#endif

static inline REAL
sigmoid(REAL x)
{
    return 1.0f / (1.0f + exp(-x));
}

static inline REAL
activate(REAL x, float beta)
{
#if ACT == 0
    return x * sigmoid(beta * x);
#elif ACT == 1
    return 0.5f * x * (1.0f + tanh(0.7978845608028654f * (x + 0.044715f * x * x * x)));
#elif ACT == 2
    return 0.5f * x * (1.0f + erf(x * 0.7071067811865476f));
#else
#error "ACT is 0, 1 or 2"
#endif
}

/* (act(gate) * up) */
static inline REAL
gated(REAL gate, REAL up, float beta)
{
    return activate(gate, beta) * up;
}
