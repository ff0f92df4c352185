/* SPDX-License-Identifier: Apache-2.0
 *
 * linear:  y_i[T,N_i] = x[T,K] W_i[N_i,K]^T (+ bias_i[N_i]) (+ addend[T,N])
 *
 * A segment is a weight with its bias. A primitive has one segment, or up to three that multiply
 * the same x (xm_linear_cannot_join). An addend (the residual) is possible with one segment only;
 * it is added before the result is rounded. Or the primitive is a gated linear unit (GLU) with one
 * result, of two segments, or of one segment and an operand `factor`:
 *
 *         y_0 = act(x W_0^T (+ bias_0)) (x W_1^T (+ bias_1))
 *         y_0 = act(x W_0^T (+ bias_0)) factor[T,slice,N]
 *
 * Weights are u4 i4 u8 i8 with a group that divides K, f16 bf16 f32, or blocks. Products are
 * accumulated in f32.
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
    /* Columns of x that share a scale when it is multiplied as 8-bit integers (struct xm_product):
     * 32 or 128; 0: x is multiplied as 16-bit integers instead. */
    uint32_t factor;
    /* The form of operand PREPARED, if present: x as a kernel for few tokens reads it
     * (primitives/form.h). If the kernel needs another form, PREPARED is ignored. */
    struct xm_rows_form prepared;
    bool has_addend;
    bool is_glu;
    enum xm_activation activation; /* act of a GLU */
    /* of operand `factor`: number of slices, index of the slice to multiply by */
    uint32_t slices, slice;
    /* most tokens of one call for which a library generates code; 0: the engine's XM_UBATCH */
    uint64_t chunk;
    uint32_t n; /* segments */
    struct xm_linear_segment segment[XM_LINEAR_SEGMENTS];
};
/* Returns NULL if supported, else the reason, a static string. Pure. */
const char *xm_linear_supports(const struct xm_device_info *device,
                               const struct xm_weight *w, enum xm_element src,
                               enum xm_element dst);
/* Returns the form in which the kernel for few tokens would read x to multiply it by w. The
 * primitive that computes x can write this form beside x, as operand PREPARED (primitives/form.h).
 * Plain rows: the kernel needs no other form. `factor` as in struct xm_linear_desc. Builds nothing;
 * XM_FORCE applies. */
struct xm_rows_form xm_linear_reads(struct xm_engine *engine, const struct xm_weight *w,
                                    enum xm_element src, uint32_t factor);
/* Returns NULL if two weights can be segments of one primitive, else the reason, a static string.
 * Pure. */
const char *xm_linear_cannot_join(const struct xm_weight *a, const struct xm_weight *b);
/* NULL: the weights can be the gate and up projections of one GLU primitive (equal numbers of rows,
 * and xm_linear_cannot_join returns NULL); else the reason, a static string. Pure. */
const char *xm_linear_cannot_gate(const struct xm_weight *gate,
                                  const struct xm_weight *up);
enum xm_status xm_linear_create(struct xm_engine *engine,
                                const struct xm_linear_desc *desc,
                                struct xm_primitive **out, struct xm_error *err);

/* matmul: c[b,M,N] = op(a) op(b), where op may transpose. Both operands are activations; batch
 * dimensions are broadcast. */
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
