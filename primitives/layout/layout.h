/* SPDX-License-Identifier: Apache-2.0
 *
 * copy: one strided copy serves transpose, slice, concat, split, broadcast and tile:
 *
 *   dst[dst_offset + sum i_d * dst_stride_d] = src[src_offset + sum i_d * src_stride_d]
 *
 * over an index space of at most 8 dimensions; strides and offsets are in elements. Elements are
 * copied unchanged. For each run the caller (lower.c) computes the space from the operands' shapes
 * with the functions below.
 */
#ifndef XM_PRIMITIVES_LAYOUT_LAYOUT_H
#define XM_PRIMITIVES_LAYOUT_LAYOUT_H

#include "primitives/primitive.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_COPY_SRC, XM_COPY_DST, XM_COPY_N_OPERANDS };

struct xm_copy_space {
    uint32_t rank;
    int64_t extent[XM_OPERAND_RANK];
    int64_t src_stride[XM_OPERAND_RANK], dst_stride[XM_OPERAND_RANK];
    int64_t src_offset, dst_offset;
};

struct xm_copy_desc {
    enum xm_element element; /* any of 8, 16, 32 or 64 bits */
};
enum xm_status xm_copy_create(struct xm_engine *engine, const struct xm_copy_desc *desc,
                              struct xm_primitive **out, struct xm_error *err);
enum xm_status xm_copy_enqueue(const struct xm_primitive *p,
                               const struct xm_operand *operands,
                               const struct xm_copy_space *space,
                               const struct xm_run *run, struct xm_error *err);

/* The next functions set *s to the space of a usual copy between operands of these shapes. */
void xm_copy_transpose(struct xm_copy_space *s, const struct xm_operand *src,
                       const int64_t *order);
void xm_copy_slice(struct xm_copy_space *s, const struct xm_operand *src,
                   const struct xm_operand *dst, const int64_t *start,
                   const int64_t *step);
/* Copies src into the part of dst that begins at `at` on `axis`. */
void xm_copy_concat_part(struct xm_copy_space *s, const struct xm_operand *src,
                         const struct xm_operand *dst, uint32_t axis, int64_t at);
/* Copies the part of src that begins at `at` on `axis` to dst. */
void xm_copy_split_part(struct xm_copy_space *s, const struct xm_operand *src,
                        const struct xm_operand *dst, uint32_t axis, int64_t at);
void xm_copy_broadcast(struct xm_copy_space *s, const struct xm_operand *src,
                       const struct xm_operand *dst);

#ifdef __cplusplus
}
#endif
#endif
