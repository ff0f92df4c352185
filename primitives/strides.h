/* SPDX-License-Identifier: Apache-2.0
 *
 * Index spaces shared by several strided operands, brought to the few dimensions that a
 * kernel loops over.
 *
 *     at_o(i) = offset_o + sum_d i_d * stride_o,d
 */
#ifndef XM_PRIMITIVES_STRIDES_H
#define XM_PRIMITIVES_STRIDES_H

#include "primitives/args.h"
#include "primitives/primitive.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_SPACE_OPERANDS = 4, XM_SPACE_KERNEL_RANK = 4 };

struct xm_space {
    uint32_t rank, n_operands;
    int64_t extent[XM_OPERAND_RANK];
    int64_t stride[XM_SPACE_OPERANDS][XM_OPERAND_RANK];
    int64_t offset[XM_SPACE_OPERANDS];
};

/* Drops extents of 1 and joins neighbours that are contiguous in every operand. */
void xm_space_collapse(struct xm_space *s);
/* Points of the space; 0 when an extent is. */
uint64_t xm_space_points(const struct xm_space *s);
/* Arguments for a kernel: n0 … n3 of a piece of a space; of operand o's <name>_at and … */
void xm_put_extents(struct xm_args *a, const struct xm_space *s);
void xm_put_offset(struct xm_args *a, const char *name, const struct xm_space *s,
                   uint32_t o);
/* … and <name>0 … <name>3. */
void xm_put_strides(struct xm_args *a, const char *name, const struct xm_space *s,
                    uint32_t o);
/* Whether every offset that operand o takes lies in [0, elements). */
bool xm_space_inside(const struct xm_space *s, uint32_t o, uint64_t elements);

/* A space of more than XM_SPACE_KERNEL_RANK dimensions is run as several of that many:
 * the outer indices are walked on the host, by the offsets. Begin with a collapsed
 * `whole`; each call of next gives one piece until it returns false. */
struct xm_space_walk {
    struct xm_space whole;
    int64_t at[XM_OPERAND_RANK];
    bool done;
};
void xm_space_walk_begin(struct xm_space_walk *w, const struct xm_space *whole);
bool xm_space_walk_next(struct xm_space_walk *w, struct xm_space *piece);

#ifdef __cplusplus
}
#endif
#endif
