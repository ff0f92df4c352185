/* SPDX-License-Identifier: Apache-2.0
 *
 * Gate, up and activation of the rows of one expert; many tokens.
 *
 *     h[p][i] = act(x[p] . gate[e][i]) * (x[p] . up[e][i])
 *
 * x and h are rows of integers (shorts.h, bytes.h), each in the order of the weights that read them
 * (OUT_PLANES: of the down projection), h zero for i >= I. Options: gate_up.h. A work-item computes
 * one block of h for all rows of one expert. Global size {blocks of I, E}, local size 1.
 */
#define REAL float16
#define REAL_IS_16
#define SHORTS 1
#include "gate_up.h"
#include "expert_rows.h"
#include "short_gemm.h"

#include "gemv_rows.h"

#ifndef OUT_SUMS
#define OUT_SUMS 0 /* h has a sum for each so many columns; 0: none */
#endif
#ifndef OUT_KIND
#define OUT_KIND 1 /* kind of prepared rows of h (prepared.h) */
#endif
#define OUT_BLOCK (16 * OUT_PLANES)

#if GROUP || BLOCKS
/* Computes columns i … i + 31 of h for `tokens` rows of x. */
static inline void
gate_up(const struct weight *gate, const struct weight *up, const struct gate_up *g,
        ulong expert, uint i, __global const int *x, uint tokens, uint i_count, uint at,
        float (*h)[OUT_BLOCK])
{
    float16 f[MOST_TOKENS][VECTORS];
    struct short_rows rows[VECTORS];
    for (uint v = 0; v < VECTORS; v++) {
        const struct weight *w = v < VECTORS / 2 ? gate : up;
        rows[v] = (struct short_rows){
            *w, stored_row(w, expert, i + v % (VECTORS / 2) * 16),
            stored_row(w, expert, i_count - 1), 32};
    }
    short_gemm(rows, x, tokens, f);
    for (uint t = 0; t < tokens; t++) {
        for (uint v = 0; v < VECTORS / 2; v++) {
            const uint first = i + v * 16;
            vstore16(gate_times_up16(g, expert, first, f[t][v],
                                     f[t][VECTORS / 2 + v]),
                     0, h[t] + at + v * 16);
            for (uint r = first < i_count ? i_count - first : 0; r < 16; r++)
                h[t][at + v * 16 + r] = 0.0f;
        }
    }
}

/* Computes a block of h from column i on for few rows of x: rows of weights one by one, gate and up
 * in turn. */
static inline void
gate_up_few(const struct weight *gate, const struct weight *up, const struct gate_up *g,
            ulong expert, uint i, __global const int *x, uint tokens, uint i_count,
            float (*h)[OUT_BLOCK])
{
    for (uint at = 0; at < OUT_BLOCK; at += 16) {
        const uint count = i + at < i_count ? min(i_count - i - at, 16u) : 0;
        float16 a[TOKENS_AT_ONCE], b[TOKENS_AT_ONCE];
        products_in_turn(gate, stored_row(gate, expert, i + at), up,
                         stored_row(up, expert, i + at), count, x, tokens, a, b);
        for (uint t = 0; t < tokens; t++) {
            vstore16(gate_times_up16(g, expert, i + at, a[t], b[t]), 0, h[t] + at);
            for (uint r = count; r < 16; r++)
                h[t][at + r] = 0.0f;
        }
    }
}

/* Writes block b of a row of h, and its sums. */
static inline void
write_block(const float *v, __global int *row, uint b, uint i_count)
{
    prepare_block(v, OUT_PLANES, OUT_KIND, row, b, prepared_blocks(i_count, OUT_PLANES));
#if OUT_SUMS && OUT_SUMS <= OUT_BLOCK
    const uint n = OUT_BLOCK / OUT_SUMS, left = i_count / OUT_SUMS - b * n;
    row += prepared_values(i_count, OUT_PLANES, OUT_KIND) + b * n;
    for (uint g = 0; g < min(n, left); g++) {
        float16 lanes = 0;
        for (uint i = 0; i < OUT_SUMS / 16; i++)
            lanes += vload16(g * (OUT_SUMS / 16) + i, v);
        row[g] = as_int(sum16(lanes));
    }
#endif
}
#endif

__kernel void
moe_gemm_gate_up_vnni(GATE_UP_PARAMETERS, __global const int *x,
                      __global const uint *first_tile, __global const int *tile_expert,
                      __global const int *source, __global int *h, uint i_count,
                      uint k_count)
{
#if GROUP || BLOCKS
    const struct weight gates = WEIGHT(gate, k_count, 0), ups = WEIGHT(up, k_count, 1);
    const struct gate_up g = GATE_UP;
    const uint b = (uint)get_global_id(0);
    const ulong expert = get_global_id(1);
    const ulong row_words = prepared_words(k_count, X_FORM);
    const ulong h_words = prepared_words(i_count, OUT_PLANES, OUT_SUMS, OUT_KIND);
    uint p = first_tile[expert] * 16;
    const uint end = expert_end(first_tile, source, expert);
    float v[MOST_TOKENS][OUT_BLOCK];
    while (p < end) {
        const uint tokens = min(tokens_of_pass(end - p), end - p);
        if (tokens <= FEW_BY_ROWS)
            gate_up_few(&gates, &ups, &g, expert, b * OUT_BLOCK, x + p * row_words, tokens,
                        i_count, v);
        else
            for (uint i = 0; i < OUT_BLOCK; i += 8 * VECTORS)
                gate_up(&gates, &ups, &g, expert, b * OUT_BLOCK + i, x + p * row_words,
                        tokens, i_count, i, v);
        for (uint t = 0; t < tokens; t++, p++)
            write_block(v[t], h + p * h_words, b, i_count);
    }
#endif
}
