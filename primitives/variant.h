/* SPDX-License-Identifier: Apache-2.0
 *
 * Variant tables: for each step of a primitive an ordered list of kernels, best first, the
 * reference last. A row that refuses a problem gives the reason, a static string; the first row
 * that does not refuse runs. A row whose kernels the device's compiler refuses is left out with
 * a warning (xm_variant_build).
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
 *     <number>           in every step without either: the Nth row that can run, slow ones
 *                        included, or the last such row if there are fewer
 *
 * so that XM_FORCE=gen runs a CPU device the way a GPU without sub-groups would run. An unknown
 * step, or a variant that is not in the step's table, is an error that names the known ones.
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

/* The layout in which a row reads the activations that it multiplies (primitives/form.h). */
enum xm_form {
    XM_FORM_ROWS, /* plain rows                                                          */
    XM_FORM_PLANES, /* prepared rows of floats in planes (kernels/cl/include/prepared.h) */
    XM_FORM_SHORTS,      /* prepared rows of 16-bit integers */
    XM_FORM_SHORT_PAIRS, /* as XM_FORM_SHORTS, an even number of rows (short_gemm.h) */
    XM_FORM_BYTES,       /* 8-bit integers, one scale per 32 or 128 columns (bytes.h) */
    XM_FORM_BF16_TILES, /* tiles of 16 tokens, bf16 (bf16_tiles.h)                        */
    XM_FORM_TILES,      /* tiles of 16 tokens, f32 (tile.h) */
    XM_FORM_LANE_TILES, /* tiles of 16 tokens, of the activations' type */
    XM_FORM_STEPS, /* tiles of halves for matrix engines (steps.h)                         */
    XM_FORM_COUNT
};

struct xm_variant {
    const char *name;
    enum xm_family family;
    /* enum xm_cap bits that the device must have; without XM_CAP_DPAS, XM_CAP_DP4A or XM_CAP_AMX
     * the kernel emulates, which is a drawback */
    uint32_t caps;
    /* Returns NULL to accept, or the reason to refuse, a static string. `problem` is a struct of
     * the step. Member NULL: never refuses. */
    const char *(*refuses)(const void *problem);
    struct xm_launch_shape launch;
    enum xm_form form;
    const char *kernel; /* its file; NULL: <name>.cl, or a library computes */
    /* of linear: one launch multiplies by all weights, adds the addend and computes a GLU */
    bool joins;
    /* moe_route: moe_gate_up may route in its place; moe_gate_up: its kernel can do so */
    bool routes;
    /* the sub-groups of a work-group share decoded weights (shared_gemm.h) */
    bool shares;
    bool emits; /* can also write its results as prepared rows (primitives/form.h) */
    /* The kernel keeps the sums of whole tiles in registers: chips with matrix engines run it in
     * large-GRF mode, with 256 registers a thread and half as many threads. */
    bool large_grf;
};

/* The build options that follow from a kernel's row: " -DROWS=4 -DITEMS=64 …". */
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

/* Returns why a row cannot run a problem on a device; NULL: it can. Ignores XM_FORCE. */
const char *xm_variant_refusal(const struct xm_variant *row,
                               const struct xm_device_info *device, const void *problem);
/* Returns why a row that can run is slow on a device (it emulates), so that only XM_FORCE takes it;
 * NULL: it is not slow. */
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
    size_t nth;            /* take the nth row that can run; 0: XM_FORCE has no number */
};

/* A class of problems for which one row of a table is the fastest on a device: types and sizes as
 * text (measured_rows.h); "": rows are not measured for it. */
struct xm_problem_class {
    char text[96];
};

/* The choice of a row from one table (xm_variant_build). The caller fills the first three members
 * and zeroes the rest. */
struct xm_pick {
    const struct xm_variant_table *table;
    const void *problem;
    struct xm_problem_class problems;
    /* one bit for each enum xm_form that a neighbouring step does not read or write */
    uint32_t not_forms;
    bool is_measured; /* row `measured` is kept for the class (measured_rows.h) */
    size_t measured;
    size_t row;            /* the choice                                               */
    uint32_t not_built;    /* rows that the compiler refuses, one bit each             */
    uint32_t wrong;        /* rows that compute wrong results here (measured_rows.h)   */
    struct xm_error first; /* the compiler error of the first row in not_built */
    struct xm_forced forced; /* read from XM_FORCE when the pick is built, not in runs */
};

/* Reads XM_FORCE for the pick's table, which row is kept for its class, and which rows are wrong on
 * this device, so that runs need not.
 * xm_variant_build calls it. */
enum xm_status xm_variant_prepare(struct xm_pick *pick, const struct xm_engine *engine,
                                  struct xm_error *err);

/* Builds the kernels of row picks[i].row; it may read the rows of the other picks. It may be called
 * again for another row, so it must free or reuse what it made before. (A second xm_engine_kernel
 * for the same kernel costs nothing.) */
typedef enum xm_status (*xm_variant_build_fn)(void *ctx, size_t i, struct xm_error *err);

/* Chooses a row for every pick, then builds them in order. If `build` returns XM_NOT_BUILT, that
 * row is left out, and all picks are chosen and built again; pass several picks if their kernels
 * depend on each other's rows. XM_NOT_BUILT, with the first compiler error: XM_FORCE names the row,
 * or no row is left. */
enum xm_status xm_variant_build(struct xm_pick *picks, size_t n,
                                const struct xm_engine *engine, xm_variant_build_fn build,
                                void *ctx, struct xm_error *err);
/* Sets *row to the index of the row for a problem (which may differ from the pick's), passing over
 * rows that do not build, or are wrong and not named by XM_FORCE. XM_UNSUPPORTED: every row
 * refuses (the error has the last reason), or the row that XM_FORCE names does. XM_NOT_BUILT: the
 * row that XM_FORCE names does not build, or no row that does is left. */
enum xm_status xm_variant_pick(const struct xm_pick *pick,
                               const struct xm_device_info *device, const void *problem,
                               size_t *row, struct xm_error *err);
/* XM_OK if XM_FORCE is valid: it names only known steps, rows and families. */
enum xm_status xm_variant_check_force(struct xm_error *err);
/* Marks a row as one that does not build; p->first keeps the error of the first such row. */
void xm_variant_leave_out(struct xm_pick *pick, size_t row, const struct xm_error *why);

/* All tables: variant_tables.c lists them. */
const struct xm_variant_table *xm_variant_tables(size_t *n);

#ifdef __cplusplus
}
#endif
#endif
