/* SPDX-License-Identifier: Apache-2.0
 *
 * How a kernel is launched: its row says what a unit of work is and along what units count; a run
 * says how much there is. xm_launch puts the two together, and is the only way to a kernel.
 *
 *     {"linear_gemm_gen", XM_FAMILY_GEN, 0, NULL, {XM_GROUP, 128, {XM_ROWS, 64}, {XM_TOKENS, 64}}}
 *
 * is work-groups of 128 work-items, each for 64 rows of a weight by 64 tokens.
 */
#ifndef XM_PRIMITIVES_LAUNCH_H
#define XM_PRIMITIVES_LAUNCH_H

#include "runtime/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Work-items of a work-group of most gen kernels: their ITEMS. Every OpenCL GPU has that
 * many. */
enum { XM_GROUP_ITEMS = 64 };
/* Lanes of a sub-group of the sg kernels, and the work-items of a work-group where one makes
 * a row: their SG and ITEMS. */
enum { XM_SUB_GROUP = 16, XM_SUB_GROUP_ITEMS = 128 };

/* What a unit of work is. */
enum xm_unit {
    XM_ITEM,  /* a work-item; the driver chooses the work-groups                       */
    XM_ALONE, /* a work-item that is a work-group: vectors do the work                 */
    XM_SPAN,  /* the same, but few of them, which share the units (span.h)             */
    XM_GROUP, /* a work-group of `size` work-items in a row; 0: as many as the run says */
    /* a sub-group of `size` lanes, several a work-group; on CPU devices, where a work-group does
     * everything in step, one. 0: of XM_SUB_GROUP. The kernel returns where x was rounded up. */
    XM_LANES
};
enum { XM_MATRIX_LANES = 0xffff }; /* `size`: the lanes of the device's matrix engines */

/* What there is a number of. */
enum xm_axis {
    XM_UNITS,    /* of a step that has one axis    */
    XM_ELEMENTS, /* what a unit consists of, for rows that take each by itself */
    XM_ONE,      /* one, always                   */
    XM_ROWS,     /* of weights: of a row of results */
    XM_COLS,     /* k, rounded up to whole blocks */
    XM_BLOCKS,   /* of them */
    XM_TOKENS,   /* or slots: rows of activations */
    XM_SLOTS,
    XM_EXPERTS,
    XM_QUERIES,     /* of attention, one of a token and a head … */
    XM_TOKEN_TILES, /* … in tiles of tokens, with all heads that share K and V … */
    XM_GROUP_TILES, /* … in tiles of a work-group, a sub-group, a matrix engine */
    XM_LANE_TILES,
    XM_MATRIX_TILES,
    XM_AXES
};

/* How many a unit takes. */
enum xm_take {
    XM_FIXED,    /* `per` of them */
    XM_PER_LANE, /* `per` for each lane of the unit */
    /* Along x: as many as keep the compute units busy, whole multiples of `per` (0: of the run's
     * block); the kernel is told by its last argument, per_item. */
    XM_SHARED
};

/* A direction of a launch. `per` 0: one of x's axis; a y or z that is not there. */
struct xm_side {
    enum xm_axis axis;
    uint16_t per;
    enum xm_take take;
};

struct xm_launch_shape {
    enum xm_unit unit;
    uint16_t size;
    struct xm_side x, y, z;
};

/* What a run has of each axis. XM_ROWS may be of several weights: a unit has rows of one. */
enum { XM_ROW_PARTS = 3 };
struct xm_counts {
    uint64_t n[XM_AXES];
    uint64_t part[XM_ROW_PARTS]; /* their rows; n_parts 0: one, n[XM_ROWS] */
    uint32_t n_parts;
    uint64_t block; /* multiples that shared rows come in */
    uint64_t items; /* work-items of a group             */
};

/* The launch of a shape, and how many a unit takes along x. Pure. */
struct xm_launch xm_launch_for(const struct xm_launch_shape *shape,
                               const struct xm_device_info *device,
                               const struct xm_counts *counts, uint64_t *per_item);

struct xm_args;
/* Enqueues; nothing where a count is 0. */
enum xm_status xm_launch(const struct xm_launch_shape *shape, struct xm_kernel *kernel,
                         const struct xm_counts *counts, const struct xm_args *args,
                         struct xm_queue *queue, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
