/* SPDX-License-Identifier: Apache-2.0
 *
 * linear:  y_i[T,N_i] = x[T,K] W_i[N_i,K]^T (+ bias_i[N_i]) (+ addend[T,N])
 *
 * One weight, or up to three that meet the same x (xm_linear_cannot_join): segments. An addend (the
 * residual) comes with one weight only; it is added before the result is rounded. Or a gated
 * linear unit, one result of two weights, or of one and a factor:
 *
 *         y_0 = act(x W_0^T (+ bias_0)) (x W_1^T (+ bias_1))
 *         y_0 = act(x W_0^T (+ bias_0)) factor[T,slice,N]
 *
 * Weights u4 i4 u8 i8 with any group that divides K, per row, f16/bf16/f32, or blocks. Products in
 * f32.
 */
#ifndef XM_PRIMITIVES_LINEAR_LINEAR_H
#define XM_PRIMITIVES_LINEAR_LINEAR_H

#include "primitives/form.h"
#include "primitives/primitive.h"
#include "runtime/operations/linear_operation.h"
#include "runtime/reference/reference.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_linear_segment {
    struct xm_device_weight *weight; /* referenced; experts == 1 */
    struct xm_buffer *bias;          /* f32 [N]; NULL: none; referenced */
};

struct xm_linear_desc {
    enum xm_element src, dst; /* f16 or f32 */
    /* Columns that share a factor where activations are multiplied as 8-bit integers (struct
     * xm_product): 32 or 128; 0: as 16-bit integers. */
    uint32_t factor;
    /* What operand PREPARED is, where it is there: x as a kernel for few tokens reads it
     * (primitives/form.h). One of another form than that kernel's is not read. */
    struct xm_rows_form prepared;
    bool has_addend;
    bool is_glu;
    enum xm_activation activation; /* of a GLU */
    uint32_t slices, slice;        /* of the factor: how many, which one */
    uint64_t chunk; /* tokens at once, at most, that a library's code is made for; 0: the
                       engine's XM_UBATCH */
    uint32_t n;     /* segments */
    struct xm_linear_segment segment[XM_LINEAR_SEGMENTS];
};
/* NULL: supported; else a static sentence. Pure. */
const char *xm_linear_supports(const struct xm_device_info *device,
                               const struct xm_weight *w, enum xm_element src,
                               enum xm_element dst);
/* How a kernel for few tokens would read x to multiply it by w: what whoever makes x might write
 * beside it (primitives/form.h); plain rows where that is all it needs. `factor` as in the
 * description. Creates nothing; XM_FORCE counts. */
struct xm_rows_form xm_linear_reads(struct xm_engine *engine, const struct xm_weight *w,
                                    enum xm_element src, uint32_t factor);
/* NULL: two weights can be segments of one primitive; else a static sentence. Pure. */
const char *xm_linear_cannot_join(const struct xm_weight *a, const struct xm_weight *b);
/* NULL: two such weights can be gate and up of a GLU; else a static sentence. Pure. */
const char *xm_linear_cannot_gate(const struct xm_weight *gate,
                                  const struct xm_weight *up);
enum xm_status xm_linear_create(struct xm_engine *engine,
                                const struct xm_linear_desc *desc,
                                struct xm_primitive **out, struct xm_error *err);

/* matmul: c[b,M,N] = op(a) op(b), both activations; batch broadcast by stride. */
enum { XM_MATMUL_A, XM_MATMUL_B, XM_MATMUL_C, XM_MATMUL_N_OPERANDS };
struct xm_matmul_desc {
    bool transpose_a, transpose_b;
    enum xm_element a, b, c; /* f16 or f32 */
};
enum xm_status xm_matmul_create(struct xm_engine *engine,
                                const struct xm_matmul_desc *desc,
                                struct xm_primitive **out, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
