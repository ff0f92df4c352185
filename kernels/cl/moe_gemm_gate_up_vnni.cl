/* SPDX-License-Identifier: Apache-2.0
 *
 * Gate, up and activation of the rows of one expert; many tokens.
 *
 *     h[p][i] = act(x[p] . gate[e][i]) * (x[p] . up[e][i])
 *
 * x and h are rows of 16-bit integers (shorts.h), each in the order of the weights that read
 * them (OUT_PLANES: of the down projection), h zero for i >= I. Forms as in gate_up.h.
 * A work-item computes one block of h for all rows of one expert. Global size {blocks of I, E},
 * local size 1.
 */
#define REAL float16
#include "gate_up.h"
#include "expert_rows.h"
#include "short_gemm.h"

#ifndef OUT_PLANES
#define OUT_PLANES 8 /* planes of the down projection */
#endif
#define OUT_BLOCK (16 * OUT_PLANES)

#if GROUP
/* The biases of 16 rows from the i-th on; those behind the last are its. */
static inline float16
biases_of(__global const float *bias, const struct short_rows *rows, uint i)
{
    float b[16];
    if (!BIASED)
        return 0.0f;
    for (uint r = 0; r < 16; r++)
        b[r] = bias[min(rows->first + (i + r) * ROW_STEP, rows->last)];
    return vload16(0, b);
}

/* Columns i ... i + 31 of h for `tokens` rows of x. */
static inline void
gate_up(const struct short_rows *gate, const struct short_rows *up, uint i,
        __global const int *x, uint tokens, uint i_count, __global const float *bias,
        float beta, float limit, uint at,
        float (*h)[OUT_BLOCK])
{
    float16 f[MOST_TOKENS][VECTORS];
    struct short_rows rows[VECTORS];
    for (uint v = 0; v < VECTORS / 2; v++) {
        rows[v] = *gate;
        rows[v].first += (i + v * 16) * ROW_STEP;
        rows[VECTORS / 2 + v] = *up;
        rows[VECTORS / 2 + v].first += (i + v * 16) * ROW_STEP;
    }
    short_gemm(rows, x, tokens, f);
    for (uint t = 0; t < tokens; t++) {
        for (uint v = 0; v < VECTORS / 2; v++) {
            const uint first = i + v * 16;
            const float16 value = gate_times_up(
                f[t][v] + biases_of(bias, gate, first),
                f[t][VECTORS / 2 + v] + biases_of(bias, up, first), beta, limit);
            vstore16(value, 0, h[t] + at + v * 16);
            for (uint r = first < i_count ? i_count - first : 0; r < 16; r++)
                h[t][at + v * 16 + r] = 0.0f;
        }
    }
}
#endif

__kernel void
moe_gemm_gate_up_vnni(__global const uchar *gate_data, __global const uchar *gate_scale,
                      __global const uchar *gate_zp, __global const uchar *up_data,
                      __global const uchar *up_scale, __global const uchar *up_zp,
                      __global const int *x, __global const uint *first_tile,
                      __global const int *source, __global const float *bias,
                      __global int *h, uint i_count, uint k_count, float beta,
                      float limit)
{
#if GROUP
    const uint b = (uint)get_global_id(0);
    const ulong expert = get_global_id(1);
    const uint out_blocks = (i_count + OUT_BLOCK - 1) / OUT_BLOCK;
    const ulong row_words = short_row_words((k_count + BLOCK - 1) / BLOCK, PLANES);
    const ulong h_words = short_row_words(out_blocks, OUT_PLANES);
    const struct gate_up_rows first = rows_of_expert(expert, i_count);
    const struct short_rows gate = {
        gate_data,     gate_scale, gate_zp, first.gate, last_row(first.gate, i_count),
        ROW_STEP,      k_count,    32 * ROW_STEP};
    const struct short_rows up = {
        up_data,       up_scale,   up_zp,   first.up,   last_row(first.up, i_count),
        ROW_STEP,      k_count,    32 * ROW_STEP};
    uint p = first_tile[expert] * 16;
    const uint end = expert_end(first_tile, source, expert);
    float v[MOST_TOKENS][OUT_BLOCK];
    while (p < end) {
        const uint tokens = min(tokens_of_pass(end - p), end - p);
        for (uint i = 0; i < OUT_BLOCK; i += 8 * VECTORS)
            gate_up(&gate, &up, b * OUT_BLOCK + i, x + p * row_words, tokens,
                    i_count, bias, beta, limit, i, v);
        for (uint t = 0; t < tokens; t++, p++)
            write_shorts(v[t], OUT_PLANES, h + p * h_words, b, out_blocks);
    }
#endif
}
