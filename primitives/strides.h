/* SPDX-License-Identifier: Apache-2.0
 *
 * Index spaces shared by several strided operands, brought to the few dimensions that a
 * kernel loops over.
 *
 *     element of operand o at index i:   at_o(i) = offset_o + sum_d i_d * stride_o,d
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

/* Drops dimensions of extent 1 and merges neighbouring dimensions that are contiguous in every
 * operand. */
void xm_space_collapse(struct xm_space *s);
/* Returns the number of points of the space; 0 if an extent is 0. */
uint64_t xm_space_points(const struct xm_space *s);
/* Appends the kernel arguments n0 … n3: the extents of a piece. */
void xm_put_extents(struct xm_args *a, const struct xm_space *s);
/* Appends the argument <name>_at: the offset of operand o. */
void xm_put_offset(struct xm_args *a, const char *name, const struct xm_space *s,
                   uint32_t o);
/* Appends the arguments <name>0 … <name>3: the strides of operand o. */
void xm_put_strides(struct xm_args *a, const char *name, const struct xm_space *s,
                    uint32_t o);
/* Returns whether every element index of operand o lies in [0, elements). */
bool xm_space_inside(const struct xm_space *s, uint32_t o, uint64_t elements);

/* Cuts a space of more than XM_SPACE_KERNEL_RANK dimensions into pieces of that rank, because
 * kernels have no more loops: the host walks the outer dimensions and moves the offsets. `whole`
 * must be collapsed. Each call of xm_space_walk_next sets one piece; it returns false when there is
 * none left. */
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
