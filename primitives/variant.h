/* SPDX-License-Identifier: Apache-2.0
 *
 * Variant tables: for each step of a primitive an ordered list of kernels, best first, the
 * reference last. A row is refused with a sentence; the first row that is not refused runs. One
 * whose kernels the device's compiler refuses is left out with a warning (xm_variant_build).
 *
 *     static const struct xm_variant glu_variants[] = {
 *         { "glu_vec", XM_FAMILY_VEC, 0, vec_refuses, {XM_SPAN} },
 *         { "glu_ref", XM_FAMILY_ANY, 0, NULL,        {XM_ITEM} },
 *     };
 *
 * The row's name is the kernel's file name and entry name. XM_DEBUG=dispatch prints every
 * refusal once per problem. Tests and benchmarks walk the same tables.
 *
 * XM_FORCE overrides the choice, with items separated by commas:
 *
 *     <step>=<variant>   that row; an error when it refuses or does not build
 *     <family>           in every step without an item of its own: the first row of the family
 *                        (ref vec gen sg host onednn) that does not refuse, or else the usual
 *                        choice
 *     <number>           in every step that has neither: the Nth row that it can take, slow ones
 *                        included, or its last
 *
 * so that XM_FORCE=gen runs a CPU device the way a GPU without sub-groups would run. A step
 * that is in no table, or a variant that is not in its table, is an error naming those there are.
 *
 * Without XM_FORCE, a row that was measured to be the fastest on the device comes before the others
 * (measured_rows.h).
 */
#ifndef XM_PRIMITIVES_VARIANT_H
#define XM_PRIMITIVES_VARIANT_H

#include "primitives/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which devices a row is for. */
enum xm_family {
    XM_FAMILY_ANY, /* correct everywhere; the reference */
    XM_FAMILY_VEC, /* explicit vectors, local size 1: CPU devices */
    XM_FAMILY_GEN, /* local memory only: any OpenCL 1.2 GPU; runs on CPU devices, slowly */
    XM_FAMILY_SG,  /* Intel sub-groups */
    XM_FAMILY_HOST, /* a host library in queue order: devices whose memory the host sees */
    XM_FAMILY_ONEDNN /* oneDNN's GPU engine on our queue: Intel GPUs */
};

/* How the activations lie that a row multiplies (primitives/form.h). */
enum xm_form {
    XM_FORM_ROWS, /* plain rows                                                          */
    XM_FORM_PLANES, /* prepared rows (kernels/cl/include/prepared.h): floats in planes …   */
    XM_FORM_SHORTS, /* … or 16-bit integers                                                */
    XM_FORM_SHORT_PAIRS, /* these, an even number of rows (short_gemm.h)                   */
    XM_FORM_BYTES, /* 8-bit integers with a factor each 32 or 128 columns (bytes.h)         */
    XM_FORM_BF16_TILES, /* tiles of 16 tokens, bf16 (bf16_tiles.h)                        */
    XM_FORM_TILES, /* tiles of 16 tokens, f32 (tile.h) …                                  */
    XM_FORM_LANE_TILES, /* … or of the activations' type                                   */
    XM_FORM_STEPS, /* tiles of halves for matrix engines (steps.h)                         */
    XM_FORM_COUNT
};

struct xm_variant {
    const char *name;
    enum xm_family family;
    uint32_t caps; /* enum xm_cap the device must have; without XM_CAP_DPAS: a drawback */
    /* NULL accepts; a static sentence refuses. The problem is the step's own struct. */
    const char *(*refuses)(const void *problem);
    struct xm_launch_shape launch;
    enum xm_form form;
    const char *kernel; /* its file; NULL: <name>.cl, or none of ours */
    bool joins;  /* of linear: all weights in one launch, which adds and gates, too */
    bool routes; /* of moe_route; of moe_gate_up: its kernel can route as that row does */
    bool
        shares; /* the sub-groups of a work-group share halves of weights (shared_gemm.h) */
    bool emits; /* writes prepared rows beside its results (primitives/form.h)      */
    /* Sums of whole tiles stay in registers: chips with matrix engines run the kernel in large-GRF
     * mode, with 256 registers a thread and half as many threads. */
    bool large_grf;
};

/* What a kernel is told by its row: " -DROWS=4 -DITEMS=64 …". */
struct xm_variant_defines {
    char text[128];
};
struct xm_variant_defines xm_variant_defines(const struct xm_variant *row,
                                             const struct xm_device_info *device);

static inline const char *
xm_variant_kernel(const struct xm_variant *row)
{
    return row->kernel ? row->kernel : row->name;
}

/* Why a row may not run on a device; NULL: it may. Without XM_FORCE. */
const char *xm_variant_refusal(const struct xm_variant *row,
                               const struct xm_device_info *device, const void *problem);
/* Why a row that may run is not worth it on a device, so that only XM_FORCE takes it; NULL:
 * it is. */
const char *xm_variant_drawback(const struct xm_variant *row,
                                const struct xm_device_info *device);

/* A step's table: at most 32 rows. */
struct xm_variant_table {
    const char *step;
    const struct xm_variant *rows;
    size_t n;
};
/* clang-format off */
#define XM_TABLE(step, rows) {step, rows, XM_ARRAY_LEN(rows)}
/* clang-format on */

/* What XM_FORCE says about a table. */
struct xm_forced {
    bool is_read;
    bool has_row, has_family;
    size_t row;            /* the row that it names    */
    enum xm_family family; /* the family that it names */
    size_t nth;            /* of the rows that a step can take; 0: it says no number */
};

/* The problems of a table for which one row is the fastest on a device: their types and sizes as
 * text (measured_rows.h); "": no row is measured for them. */
struct xm_problem_class {
    char text[96];
};

/* One table's part in xm_variant_build; the caller fills the first three members and zeroes the
 * rest. */
struct xm_pick {
    const struct xm_variant_table *table;
    const void *problem;
    struct xm_problem_class problems;
    uint32_t not_forms; /* forms that a step beside it cannot share, one bit each   */
    bool is_measured;   /* a row is kept for the class: `measured` */
    size_t measured;
    size_t row;            /* the choice                                               */
    uint32_t not_built;    /* rows that the compiler refuses, one bit each             */
    struct xm_error first; /* why the first of them is refused                         */
    struct xm_forced forced; /* read when the pick is built: runs do not read it       */
};

/* Reads what XM_FORCE says of the pick's table, and which row is kept for its class; runs read
 * neither again. xm_variant_build calls it. */
enum xm_status xm_variant_prepare(struct xm_pick *pick, const struct xm_engine *engine,
                                  struct xm_error *err);

/* Builds the kernels of row picks[i].row; it may look at the rows of the other picks. Calls of
 * xm_engine_kernel cost nothing the second time; whatever else it makes it makes once, for it
 * may be called again. */
typedef enum xm_status (*xm_variant_build_fn)(void *ctx, size_t i, struct xm_error *err);

/* Chooses a row for every pick, then builds them in order. When `build` says XM_NOT_BUILT, that
 * row is left out, and all are chosen and built again: with one pick, or with several whose
 * kernels depend on each other's rows. XM_NOT_BUILT with the first cause when XM_FORCE names
 * the row or no row is left. */
enum xm_status xm_variant_build(struct xm_pick *picks, size_t n,
                                const struct xm_engine *engine, xm_variant_build_fn build,
                                void *ctx, struct xm_error *err);
/* The index of the row to use for a problem (which may be another than the pick's), without the
 * rows that are known not to build. XM_UNSUPPORTED when every row refuses (the sentence has the
 * last reason) or the forced one does. */
enum xm_status xm_variant_pick(const struct xm_pick *pick,
                               const struct xm_device_info *device, const void *problem,
                               size_t *row, struct xm_error *err);
/* Whether all that XM_FORCE says can be read: it names steps, rows and families that there are. */
enum xm_status xm_variant_check_force(struct xm_error *err);
/* Notes that a row does not build, and why (the first cause is kept). */
void xm_variant_leave_out(struct xm_pick *pick, size_t row, const struct xm_error *why);

/* All tables: variant_tables.c lists them. */
const struct xm_variant_table *xm_variant_tables(size_t *n);

#ifdef __cplusplus
}
#endif
#endif
