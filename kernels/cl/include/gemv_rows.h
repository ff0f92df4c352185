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

/* The products of stored row n with `tokens` rows of x, at most TOKENS_AT_ONCE: out[t * step]. */
static inline void
products_with(const struct weight *w, ulong n, __global const int *x, uint tokens,
              float *out, uint step)
{
#if SHORTS && BLOCKS
    if (tokens > 1) {
        float16 sum[TOKENS_AT_ONCE];
        short_row_dots(w, n, x, prepared_words(w->k_count, PLANES, SUM_K, X_KIND), tokens,
                       sum);
        for (uint t = 0; t < tokens; t++)
            out[t * step] = sum16(sum[t]);
        return;
    }
#endif
    for (uint t = 0; t < tokens; t++) {
        const struct x_row row = x_row_at(x, t, w->k_count);
        out[t * step] = sum16(product_with(w, n, &row));
    }
}
