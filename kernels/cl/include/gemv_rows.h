/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of weights times rows of activations on CPU devices, in the form that the activations have:
 *
 *   SHORTS  0: planes, f32 (gemv.h); 1: 16-bit integers (short_gemv.h)
 *
 * xs has the sums of the groups in either.
 */
#ifndef SHORTS
#define SHORTS 0
#endif
#include "gemv.h"
#include "short_gemv.h"
#define X_WORD_0 float
#define X_WORD_1 int
#define X_WORD   PASTE(X_WORD_, SHORTS)

/* A prepared row of activations. */
struct x_row {
    __global const X_WORD *x;
    __global const float *sums;
};

/* 32-bit words of a row. */
static inline ulong
x_row_words(uint k_count)
{
    const uint blocks = (k_count + BLOCK - 1) / BLOCK;
#if SHORTS
    return short_row_words(blocks, PLANES);
#else
    return (ulong)blocks * BLOCK;
#endif
}

/* Its group sums. */
static inline uint
x_row_sums(uint k_count)
{
    return GROUP ? k_count / GROUP : 1;
}

static inline struct x_row
x_row_at(__global const X_WORD *x, __global const float *sums, ulong row, uint k_count)
{
    return (struct x_row){x + row * x_row_words(k_count),
                          sums + row * x_row_sums(k_count)};
}

/* The product with stored row n, still spread over 16 lanes that the caller adds up (sum16). */
__attribute__((always_inline)) static inline float16
product_with(const struct weight *w, ulong n, const struct x_row *x)
{
#if SHORTS
    return short_row_dot(w, n, x->x, x->sums);
#else
    return row_dot(w, n, x->x, x->sums);
#endif
}
