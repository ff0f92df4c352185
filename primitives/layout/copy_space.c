/* SPDX-License-Identifier: Apache-2.0
 *
 * Index spaces of the usual copies, from the shapes of dense row-major operands.
 */
#include <string.h>

#include "primitives/layout/layout.h"

static void
dense_strides(const struct xm_operand *o, int64_t *stride)
{
    int64_t step = 1;
    for (uint32_t d = o->rank; d-- > 0;) {
        stride[d] = step;
        step *= o->dim[d];
    }
}

void
xm_copy_transpose(struct xm_copy_space *s, const struct xm_operand *src,
                  const int64_t *order)
{
    int64_t stride[XM_OPERAND_RANK], step = 1;
    memset(s, 0, sizeof(*s));
    dense_strides(src, stride);
    s->rank = src->rank;
    for (uint32_t d = src->rank; d-- > 0;) {
        s->extent[d] = src->dim[order[d]];
        s->src_stride[d] = stride[order[d]];
        s->dst_stride[d] = step;
        step *= s->extent[d];
    }
}

void
xm_copy_slice(struct xm_copy_space *s, const struct xm_operand *src,
              const struct xm_operand *dst, const int64_t *start, const int64_t *step)
{
    int64_t stride[XM_OPERAND_RANK];
    memset(s, 0, sizeof(*s));
    dense_strides(src, stride);
    dense_strides(dst, s->dst_stride);
    s->rank = src->rank;
    for (uint32_t d = 0; d < src->rank; d++) {
        s->extent[d] = dst->dim[d];
        s->src_stride[d] = stride[d] * step[d];
        s->src_offset += stride[d] * start[d];
    }
}

void
xm_copy_concat_part(struct xm_copy_space *s, const struct xm_operand *src,
                    const struct xm_operand *dst, uint32_t axis, int64_t at)
{
    memset(s, 0, sizeof(*s));
    dense_strides(src, s->src_stride);
    dense_strides(dst, s->dst_stride);
    s->rank = src->rank;
    memcpy(s->extent, src->dim, sizeof(s->extent));
    s->dst_offset = at * s->dst_stride[axis];
}

void
xm_copy_split_part(struct xm_copy_space *s, const struct xm_operand *src,
                   const struct xm_operand *dst, uint32_t axis, int64_t at)
{
    memset(s, 0, sizeof(*s));
    dense_strides(src, s->src_stride);
    dense_strides(dst, s->dst_stride);
    s->rank = dst->rank;
    memcpy(s->extent, dst->dim, sizeof(s->extent));
    s->src_offset = at * s->src_stride[axis];
}

void
xm_copy_broadcast(struct xm_copy_space *s, const struct xm_operand *src,
                  const struct xm_operand *dst)
{
    int64_t stride[XM_OPERAND_RANK];
    memset(s, 0, sizeof(*s));
    dense_strides(src, stride);
    dense_strides(dst, s->dst_stride);
    s->rank = dst->rank;
    memcpy(s->extent, dst->dim, sizeof(s->extent));
    for (uint32_t d = 0; d < src->rank; d++) {
        uint32_t to = dst->rank - src->rank + d; /* shapes are aligned at their end */
        s->src_stride[to] = src->dim[d] == 1 ? 0 : stride[d];
    }
}
