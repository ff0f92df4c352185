/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the launch size of a kernel. The variant's row says what a unit of work is and along
 * which axes units are counted; a run gives the sizes of the axes. xm_launch combines both, and is
 * the only function that launches kernels of primitives.
 *
 *     {"linear_gemm_gen", XM_FAMILY_GEN, 0, NULL, {XM_GROUP, 128, {XM_ROWS, 64}, {XM_TOKENS, 64}}}
 *
 * launches work-groups of 128 work-items, each of which computes 64 rows of a weight for 64 tokens.
 */
#ifndef XM_PRIMITIVES_LAUNCH_H
#define XM_PRIMITIVES_LAUNCH_H

#include "runtime/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Work-items in a work-group of most kernels of family gen (their define ITEMS); every OpenCL GPU
 * supports this size. */
enum { XM_GROUP_ITEMS = 64 };
/* Kernels of family sg: lanes of a sub-group (their define SG), and work-items of a work-group that
 * computes one row (their define ITEMS). */
enum { XM_SUB_GROUP = 16, XM_SUB_GROUP_ITEMS = 128 };

/* What computes one unit of work. */
enum xm_unit {
    XM_ITEM,  /* a work-item; the driver chooses the work-group size                   */
    XM_ALONE, /* a work-group of one work-item, which computes with vectors            */
    XM_SPAN,  /* as XM_ALONE; a few work-groups divide all units among them (span.h) */
    XM_GROUP, /* a work-group of `size` work-items along x; 0: xm_counts.items         */
    /* A sub-group of `size` lanes (0: XM_SUB_GROUP). A work-group has several of them, or one on
     * CPU devices. The launch is rounded up along x: the kernel returns in surplus sub-groups. */
    XM_LANES
};
/* value of xm_launch_shape.size: as many lanes as the device's matrix engines have */
enum { XM_MATRIX_LANES = 0xffff };

/* The axes along which units are counted. */
enum xm_axis {
    XM_UNITS,    /* units of a step that has a single axis                       */
    XM_ELEMENTS, /* elements of all units, for variants with a work-item for each */
    XM_ONE,      /* always 1                                                     */
    XM_ROWS,     /* rows of weights: elements of a row of results                */
    XM_COLS,     /* columns of weights (k), rounded up to whole blocks           */
    XM_BLOCKS,   /* the blocks to which XM_COLS is rounded up */
    XM_TOKENS,   /* rows of activations                                          */
    XM_SLOTS,    /* pairs of a token and one of its experts                      */
    XM_EXPERTS,
    XM_QUERIES,     /* of attention: pairs of a token and a query head          */
    XM_TOKEN_TILES, /* tiles of tokens, for each head of K and V with all its query heads */
    XM_GROUP_TILES,  /* tiles of queries, one for each work-group */
    XM_LANE_TILES,   /* tiles of queries, one for each sub-group */
    XM_MATRIX_TILES, /* tiles of queries, of the size that matrix engines multiply */
    XM_AXES
};

/* How many elements of an axis a unit processes. */
enum xm_take {
    XM_FIXED,    /* `per` */
    XM_PER_LANE, /* `per` for each lane of the unit */
    /* Along x only: so many elements that all compute units are busy (xm_row_blocks_per_item), a
     * multiple of `per` (0: of xm_counts.block). The kernel receives the number as its last
     * argument, per_item. */
    XM_SHARED
};

/* A dimension of a launch. `per` 0: for x, 1; for y and z, the dimension is not used. */
struct xm_side {
    enum xm_axis axis;
    uint16_t per;
    enum xm_take take;
};

struct xm_launch_shape {
    enum xm_unit unit;
    uint16_t size;
    struct xm_side x, y, z;
    /* sub-groups of the work-group that shares a unit; 0: each sub-group has a unit */
    uint16_t split;
};

/* The sizes of the axes in one run. */
enum { XM_ROW_PARTS = 3 };
struct xm_counts {
    uint64_t n[XM_AXES];
    /* rows of each weight if one launch multiplies by several, since a unit must not span two of
     * them; n_parts 0: one weight, of n[XM_ROWS] rows */
    uint64_t part[XM_ROW_PARTS];
    uint32_t n_parts;
    uint64_t block; /* for XM_SHARED: the multiple of rows             */
    uint64_t items; /* for XM_GROUP of size 0: work-items of a work-group */
};

/* Returns the lanes of the sub-groups of a shape whose unit is XM_LANES. */
uint64_t xm_launch_lanes(const struct xm_launch_shape *s,
                         const struct xm_device_info *device);
/* Returns the global and local size for a shape. *per_item: the elements that a unit processes
 * along x. Pure. */
struct xm_launch xm_launch_for(const struct xm_launch_shape *shape,
                               const struct xm_device_info *device,
                               const struct xm_counts *counts, uint64_t *per_item);

struct xm_args;
/* Enqueues the kernel with the sizes of xm_launch_for; does nothing if an axis has the size 0. */
enum xm_status xm_launch(const struct xm_launch_shape *shape, struct xm_kernel *kernel,
                         const struct xm_counts *counts, const struct xm_args *args,
                         struct xm_queue *queue, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
