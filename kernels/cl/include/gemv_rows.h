/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of weights times prepared rows of activations (prepared.h) on CPU devices:
 *
 *   SHORTS  0: planes (gemv.h); 1: 16-bit integers (short_gemv.h)
 */
#include "gemv.h"
#include "prepared.h"
#include "short_gemv.h"

/* A prepared row. */
struct x_row {
    __global const int *x;
    __global const float *sums;
};

static inline struct x_row
x_row_at(__global const int *x, ulong row, uint k_count)
{
    x += row * prepared_words(k_count, PLANES, SUM_K, X_KIND);
    return (struct x_row){
        x, (__global const float *)x + prepared_values(k_count, PLANES, X_KIND)};
}

/* The product with stored row n, still spread over 16 lanes that the caller adds up (sum16). */
__attribute__((always_inline)) static inline float16
product_with(const struct weight *w, ulong n, const struct x_row *x)
{
#if SHORTS
    return short_row_dot(w, n, x->x, x->sums);
#else
    return row_dot(w, n, (__global const float *)x->x, x->sums);
#endif
}
