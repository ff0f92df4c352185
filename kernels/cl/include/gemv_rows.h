/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of weights times prepared rows of activations (prepared.h) on CPU devices:
 *
 *   SHORTS  0: planes (gemv.h); 1: 16-bit integers (short_gemv.h)
 */
#include "gemv.h"
#include "prepared.h"
#include "short_gemv.h"

/* A prepared row of activations and its sums. */
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

/* Returns the product of x with stored row n, spread over 16 lanes that the caller adds up
 * (sum16). */
__attribute__((always_inline)) static inline float16
product_with(const struct weight *w, ulong n, const struct x_row *x)
{
#if SHORTS
    float16 sum;
    short_row_dots(w, n, x->x, 0, 1, &sum);
    return sum;
#else
    return row_dot(w, n, (__global const float *)x->x, x->sums);
#endif
}

/* Rows of weights whose lanes are added up at once (sum_each): horizontal sums one by one, and
 * conversions, cost as much as the products of 500 columns. */
#define ROWS_AT_ONCE 16

/* Rows of x that are multiplied by a row of weights while it is decoded. On processors with 16
 * registers more rows would wait for loads of x longer than decoding the row again takes. */
#ifdef __AVX512F__
#define DOTS_AT_ONCE TOKENS_AT_ONCE
#else
#define DOTS_AT_ONCE 2
#endif

#if SHORTS
/* Computes the products of stored row n with `tokens` rows of x: out[t * ROWS_AT_ONCE]. */
__attribute__((always_inline)) static inline void
dots_with(const struct weight *w, ulong n, __global const int *x, const uint tokens,
          float16 *out)
{
    float16 sum[TOKENS_AT_ONCE];
    short_row_dots(w, n, x, prepared_words(w->k_count, PLANES, SUM_K, X_KIND), tokens,
                   sum);
    for (uint t = 0; t < tokens; t++)
        out[t * ROWS_AT_ONCE] = sum[t];
}
#endif

/* The same for at most TOKENS_AT_ONCE rows of x, each product spread over 16 lanes. */
static inline void
products_with(const struct weight *w, ulong n, __global const int *x, uint tokens,
              float16 *out)
{
    uint t = 0;
#if SHORTS
    for (; t + DOTS_AT_ONCE <= tokens; t += DOTS_AT_ONCE)
        dots_with(w, n, x_row_at(x, t, w->k_count).x, DOTS_AT_ONCE,
                  out + t * ROWS_AT_ONCE);
    for (; DOTS_AT_ONCE > 2 && t + 2 <= tokens; t += 2)
        dots_with(w, n, x_row_at(x, t, w->k_count).x, 2, out + t * ROWS_AT_ONCE);
#endif
    for (; t < tokens; t++) {
        const struct x_row row = x_row_at(x, t, w->k_count);
        out[t * ROWS_AT_ONCE] = product_with(w, n, &row);
    }
}

/* Computes the products of `count` (at most ROWS_AT_ONCE) stored rows from n on: lane i of out[t]
 * is that of row n + i with row t of x. Lanes from `count` on are undefined. */
static inline void
products_of_rows(const struct weight *w, ulong n, uint count, __global const int *x,
                 uint tokens, float16 *out)
{
    float16 lanes[TOKENS_AT_ONCE][ROWS_AT_ONCE];
    for (uint i = 0; i < count; i++)
        products_with(w, n + i, x, tokens, lanes[0] + i);
    for (uint t = 0; t < tokens; t++)
        out[t] = sum_each(lanes[t]);
}

/* The same for rows of two weights in turn, which reads two long streams of memory. (Four rows at
 * once in one loop, which would share the work on x, took twice as long on Zen 4.) */
static inline void
products_in_turn(const struct weight *a, ulong a_row, const struct weight *b, ulong b_row,
                 uint count, __global const int *x, uint tokens, float16 *out_a,
                 float16 *out_b)
{
    float16 lanes_a[TOKENS_AT_ONCE][ROWS_AT_ONCE], lanes_b[TOKENS_AT_ONCE][ROWS_AT_ONCE];
    for (uint i = 0; i < count; i++) {
        products_with(a, a_row + i, x, tokens, lanes_a[0] + i);
        products_with(b, b_row + i, x, tokens, lanes_b[0] + i);
    }
    for (uint t = 0; t < tokens; t++) {
        out_a[t] = sum_each(lanes_a[t]);
        out_b[t] = sum_each(lanes_b[t]);
    }
}
