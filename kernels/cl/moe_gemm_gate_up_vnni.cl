/* SPDX-License-Identifier: Apache-2.0
 *
 * Gate, up and activation of the rows of one expert; many tokens.
 *
 *     h[p][i] = act(x[p] . gate[e][i]) * (x[p] . up[e][i])
 *
 * x and h are rows of 16-bit integers (shorts.h), each in the order of the weights that read
 * them (OUT_PLANES: of the down projection), h zero for i >= I. CLAMPED as in moe_gate_up_ref.
 * A work-item computes one block of h for all rows of one expert. Global size {blocks of I, E},
 * local size 1.
 */
#define REAL float16
#include "activation.h"
#include "expert_rows.h"
#include "short_gemm.h"

#ifndef OUT_PLANES
#define OUT_PLANES 8 /* planes of the down projection */
#endif
#define OUT_BLOCK (16 * OUT_PLANES)
#ifndef CLAMPED
#define CLAMPED 0
#endif

#if GROUP
/* Columns i ... i + 31 of h for `tokens` rows of x. */
static inline void
gate_up(const struct short_rows *gate, const struct short_rows *up, uint i,
        __global const int *x, uint tokens, ulong expert, uint i_count,
        __global const float *bias, float beta, float limit, uint at,
        float (*h)[OUT_BLOCK])
{
    float16 f[MOST_TOKENS][VECTORS];
    struct short_rows rows[VECTORS];
    for (uint v = 0; v < VECTORS / 2; v++) {
        rows[v] = *gate;
        rows[v].first += (i + v * 16) * gate->stride;
        rows[VECTORS / 2 + v] = *up;
        rows[VECTORS / 2 + v].first += (i + v * 16) * up->stride;
    }
    short_gemm(rows, x, tokens, f);
    for (uint t = 0; t < tokens; t++) {
        for (uint v = 0; v < VECTORS / 2; v++) {
            const uint first = i + v * 16;
            float16 value;
#if CLAMPED
            float b[2][16] = {{0}};
            for (uint r = 0; bias && r < 16 && first + r < i_count; r++) {
                b[0][r] = bias[(expert * i_count + first + r) * 2];
                b[1][r] = bias[(expert * i_count + first + r) * 2 + 1];
            }
            value = gated_clamped(f[t][v] + vload16(0, b[0]),
                                  f[t][VECTORS / 2 + v] + vload16(0, b[1]), beta, limit);
#else
            value = gated(f[t][v], f[t][VECTORS / 2 + v], beta);
#endif
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
    const ulong expert = get_global_id(1), per_row = CLAMPED ? 2 : 1;
    const uint out_blocks = (i_count + OUT_BLOCK - 1) / OUT_BLOCK;
    const ulong row_words = short_row_words((k_count + BLOCK - 1) / BLOCK, PLANES);
    const ulong h_words = short_row_words(out_blocks, OUT_PLANES);
    const ulong row = expert * i_count * per_row, last = row + i_count * per_row - 1;
    const struct short_rows gate = {gate_data, gate_scale, gate_zp, row,
                                    last,      per_row,    k_count, 32 * per_row};
#if CLAMPED
    const struct short_rows up = {gate_data, gate_scale, gate_zp, row + 1,
                                  last,      per_row,    k_count, 32 * per_row};
#else
    const struct short_rows up = {up_data, up_scale, up_zp,   row,
                                  last,    per_row,  k_count, 32 * per_row};
#endif
    uint p = first_tile[expert] * 16;
    const uint end = expert_end(first_tile, source, expert);
    float v[MOST_TOKENS][OUT_BLOCK];
    while (p < end) {
        const uint tokens = min(tokens_of_pass(end - p), end - p);
        for (uint i = 0; i < OUT_BLOCK; i += 8 * VECTORS)
            gate_up(&gate, &up, b * OUT_BLOCK + i, x + p * row_words, tokens, expert,
                    i_count, bias, beta, limit, i, v);
        for (uint t = 0; t < tokens; t++, p++)
            write_shorts(v[t], OUT_PLANES, h + p * h_words, b, out_blocks);
    }
#endif
}
