/* SPDX-License-Identifier: Apache-2.0
 *
 * The activation functions, and the gated activation of an expert.
 *
 *   ACT  the function: the number of its row in runtime/operations/activations.def, from 0
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
#if ACT == 0 /* SWISH */
    return x * sigmoid(beta * x);
#elif ACT == 1 /* GELU_TANH */
    return 0.5f * x * (1.0f + tanh(0.7978845608028654f * (x + 0.044715f * x * x * x)));
#elif ACT == 2 /* GELU_ERF */
    return 0.5f * x * (1.0f + erf(x * 0.7071067811865476f));
#else
#error "ACT is no row of activations.def"
#endif
}

/* (act(gate) * up) */
static inline REAL
gated(REAL gate, REAL up, float beta)
{
    return activate(gate, beta) * up;
}
