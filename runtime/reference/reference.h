/* SPDX-License-Identifier: Apache-2.0
 *
 * Each formula once, as plain loops over float arrays in row-major order: `evaluate` computes with
 * them, and each primitive's host reference and test compares with them. Sums are in f32 (or f64
 * where noted). Results must not overlap operands unless noted. Functions that allocate scratch
 * return XM_NO_MEMORY if that fails; the others cannot fail.
 *
 * Letters: T tokens, H hidden, I intermediate, E experts, K top-k (or inputs of a linear
 * layer), N outputs, B batch, D head dimension.
 */
#ifndef XM_RUNTIME_REFERENCE_REFERENCE_H
#define XM_RUNTIME_REFERENCE_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/operations/moe_operation.h"
#include "runtime/util/status.h"
#include "runtime/weight.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- activations (activation.c) ---------------------------------------------------- */

/* Returns activation a of x; beta is a parameter of swish, x sigmoid(beta x). */
float xm_ref_activation(enum xm_activation a, float beta, float x);
float xm_ref_sigmoid(float x);

/* ---- linear (reference_linear.c) --------------------------------------------------- */

/* y[T,N] = x[T,K] w[e]^T (+ bias[N]), sums in f32; e is `expert`; bias may be NULL. */
enum xm_status xm_ref_linear(const float *x, uint64_t tokens, const struct xm_weight *w,
                             uint64_t expert, const float *bias, float *y);

/* c[M,N] = op(a) op(b). op(a) is M x K, stored K x M when transpose_a; op(b) is K x N, stored
 * N x K when transpose_b. */
void xm_ref_matmul(const float *a, bool transpose_a, const float *b, bool transpose_b,
                   uint64_t m, uint64_t n, uint64_t k, float *c);

/* ---- norm, rope, softmax, top-k (reference_norm.c … topk.c) ------------------------ */

/* y = x / sqrt(mean(x^2) + epsilon) * gamma, rows of n; gamma may be NULL (ones). */
void xm_ref_rms_norm(const float *x, const float *gamma, uint64_t rows, uint64_t n,
                     float epsilon, float *y);

/* Rotary embedding, half-split ("neox") pairs, on x[tokens, heads, D] with tables
 * cos, sin [tokens, R], R <= D rotated dimensions (the rest is copied):
 *     y[i]       = x[i] cos[i] - x[i + R/2] sin[i]                       i < R/2
 *     y[i + R/2] = x[i + R/2] cos[i + R/2] + x[i] sin[i + R/2]                    */
void xm_ref_rope(const float *x, const float *cos, const float *sin, uint64_t tokens,
                 uint64_t heads, uint64_t d, uint64_t rotated, float *y);

/* Makes the tables cos and sin of xm_ref_rope, one row for each token:
 *     cos[t,i] = scale cos(positions[t] frequencies[i mod R]), sin alike
 * for i < R, or for i < 2R if `twice` */
void xm_ref_rope_tables(const int64_t *positions, const float *frequencies,
                        uint64_t tokens, uint64_t r, float scale, bool twice, float *cos,
                        float *sin);

/* Softmax over dimension n of x[outer, n, inner]; y may be x. */
void xm_ref_softmax(const float *x, uint64_t outer, uint64_t n, uint64_t inner, float *y);

/* A row of n elements that are `stride` apart: floats f or, if f is NULL, integers i. */
struct xm_ref_row {
    const float *f;
    const int64_t *i;
    uint64_t n, stride;
};
/* Finds the indices of the k largest (or smallest) elements of a row, best first; of equal elements
 * the lower index first. */
void xm_ref_topk_ids(const struct xm_ref_row *x, uint64_t k, bool largest, int32_t *ids);
/* As xm_ref_topk_ids for each row of x[rows, n], with the values of the elements. */
void xm_ref_topk(const float *x, uint64_t rows, uint64_t n, uint64_t k, bool largest,
                 float *values, int32_t *ids);

/* ---- attention (reference_attention.c) --------------------------------------------- */

/* Attention of one sequence of T new tokens to its S = past + T positions.
 *   out[t,h,:] = softmax_j(scale q[t,h].k[j,h'] (soft-capped) + mask) v[j,h'],  h' = h / (Hq/Hkv)
 * Row t of q is at position past + t. The row sees position j if key_mask[j]
 * != 0 (NULL: always), if j <= past + t (with `causal`), and if past + t - j < window (window > 0).
 * mask (NULL: none) is added to the scores, [mask_heads (1 or Hq), T, S]. exp(sinks[h]) is added
 * to the softmax's denominator (NULL: none). A row that sees no position gives zeros. */
struct xm_ref_attention {
    uint64_t tokens, keys; /* T, S = past + T */
    uint64_t heads_q, heads_kv, d, dv;
    uint64_t past;
    float scale, soft_cap; /* soft_cap 0: none */
    bool causal;
    uint64_t window;         /* 0: none */
    const float *q;          /* [T, Hq, D] */
    const float *k, *v;      /* [S, Hkv, D], [S, Hkv, Dv] */
    const int64_t *key_mask; /* [S] */
    const float *mask;       /* [mask_heads, T, S] */
    uint64_t mask_heads;
    const float *sinks;
    float *out; /* [T, Hq, Dv] */
};
enum xm_status xm_ref_attention(const struct xm_ref_attention *a);

/* ---- rotation of heads (rotate.c) -------------------------------------------------- */

/* Returns the block size of a Hadamard rotation of rows of n > 0 elements: the largest power of two
 * that divides n, at most 128; below 16 it is 1, which means no rotation. */
uint64_t xm_ref_rotation(uint64_t n);
/* Rotates each block of x[rows, n] in place (Walsh-Hadamard transform, its own inverse): y[i] =
 * sum_j x[j] (-1)^popcount(i & j) / sqrt(block). Computes butterflies of strides 1, 2, 4, … in this
 * order, as the kernels do. */
void xm_ref_rotate(float *x, uint64_t rows, uint64_t n);

/* ---- rows of the KV cache (cached_row.c) -------------------------------------------- */

/* Decodes one row of the KV cache, n elements of type `cache` (f16, f32, i8 or u4), to x. Rows of
 * i8 and u4 are stored rotated (xm_ref_rotate) and are rotated back; `scales` has one byte for each
 * block of 16 elements. */
void xm_ref_cached_row(enum xm_element cache, const uint8_t *values,
                       const uint8_t *scales, uint64_t n, float *x);

/* ---- mixture of experts (reference_moe.c) ------------------------------------------ */

/* Routes tokens: from logits[T,E] computes weights[T,K] and ids[T,K]. bias[E] and expert_scale[E]
 * may be NULL. At the end the weight of each chosen expert is multiplied by expert_scale[id]. */
enum xm_status xm_ref_moe_route(const struct xm_moe_routing *r, const float *logits,
                                const float *bias, const float *expert_scale,
                                uint64_t tokens, uint64_t experts, float *weights,
                                int32_t *ids);

/* The weights, biases and factors of a set of experts. */
struct xm_moe_weights {
    /* up NULL: gate holds the rows of both (enum xm_gate_up) */
    const struct xm_weight *gate, *up, *down;
    /* one row for each expert; NULL: none */
    const float *bias_gate, *bias_up, *bias_down;
    const float *factor; /* [E,I]; NULL: none           */
};

/* y[T,H] = sum_k weights[t,k] expert(ids[t,k], x[t]) (moe_operation.h); f32 throughout. An id is an
 * index into the experts of *w; if xm_moe_is_part(a) it may be -1: that slot adds nothing. Of *a
 * only the description of an expert is read, not the routing. XM_INVALID: another id. */
enum xm_status xm_ref_moe(const struct xm_moe_attr *a, const struct xm_moe_weights *w,
                          const float *x, const float *weights, const int32_t *ids,
                          uint64_t tokens, uint32_t top_k, float *y);

/* out[s,t,:] = a[min(s, a_slots - 1), t, :] w[ids[t,s]]^T (+ bias[ids[t,s], :]): one product for
 * each of a token's K slots (chosen experts). a [a_slots (1 or K), T, cols]; out [K, T, rows]; bias
 * may be NULL. */
enum xm_status xm_ref_gather_matmul(const float *a, uint64_t a_slots,
                                    const struct xm_weight *w, const int32_t *ids,
                                    const float *bias, uint64_t tokens, uint32_t top_k,
                                    float *out);

#ifdef __cplusplus
}
#endif
#endif
