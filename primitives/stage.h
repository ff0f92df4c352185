/* SPDX-License-Identifier: Apache-2.0
 *
 * A stage is one step of a primitive: its variant table and the kernels built from it.
 *
 * Built at create: the rows that the device takes, best first, up to the first one that
 * never refuses a shape and does build; the rows behind it are reached through XM_FORCE only
 * and built then. A row that the device's compiler refuses is left out.
 */
#ifndef XM_PRIMITIVES_STAGE_H
#define XM_PRIMITIVES_STAGE_H

#include "primitives/args.h"
#include "primitives/primitive.h"
#include "primitives/variant.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_STAGE_ROWS = 5, XM_STAGE_DEFINES = 320 };

struct xm_stage {
    struct xm_pick pick; /* its table, and what is known of its rows; its problem: NULL
                          * where each run has another */
    struct xm_engine *engine; /* the primitive's                                        */
    struct xm_kernel *kernel[XM_STAGE_ROWS]; /* the engine's; NULL: not built           */
    char defines[XM_STAGE_DEFINES];
};

/* What runs a step for one problem. */
struct xm_choice {
    const struct xm_variant *row;
    struct xm_kernel *kernel;
};

/* XM_NOT_BUILT with the first cause: no row is left, or XM_FORCE names one that fails. */
enum xm_status xm_stage_build(struct xm_stage *s, struct xm_engine *engine,
                              const struct xm_variant_table *table, const char *defines,
                              struct xm_error *err);
/* For one problem, which stays: builds only what will run it. The calls below need no problem
 * then. s->pick.problems is the caller's to set before. */
enum xm_status xm_stage_build_for(struct xm_stage *s, struct xm_engine *engine,
                                  const struct xm_variant_table *table,
                                  const void *problem, const char *defines,
                                  struct xm_error *err);
enum xm_status xm_stage_choose(const struct xm_stage *s, const void *problem,
                               struct xm_choice *out, struct xm_error *err);
/* Whether that row writes prepared rows (primitives/form.h). */
bool xm_stage_emits(const struct xm_stage *s, const void *problem);
/* The name of the row that would run; "none" when every one refuses. */
const char *xm_stage_describe(const struct xm_stage *s, const void *problem);

/* Chooses and enqueues (xm_launch). */
enum xm_status xm_stage_run(const struct xm_stage *s, const void *problem,
                            const struct xm_counts *counts, const struct xm_args *args,
                            const struct xm_run *run, struct xm_error *err);
/* The same for a step that has one axis, XM_UNITS. */
enum xm_status xm_stage_go(const struct xm_stage *s, const void *problem, uint64_t units,
                           const struct xm_args *args, const struct xm_run *run,
                           struct xm_error *err);

/* A primitive of one step. */
struct xm_staged {
    struct xm_primitive base;
    struct xm_stage stage;
    const void *desc; /* a copy of its descriptor */
};
/* What primitives have in common that do the same. */
struct xm_staged_kind {
    struct xm_primitive_ops ops;
    const struct xm_variant_table *table;
    size_t desc_bytes;
    bool is_problem; /* the descriptor is all that the rows look at */
};
/* Makes one, with kernels built with these options (printf). What the descriptor refers to is the
 * caller's to reference, afterwards. */
enum xm_status xm_staged_create(const struct xm_staged_kind *kind,
                                struct xm_engine *engine, const void *desc,
                                struct xm_primitive **out, struct xm_error *err,
                                const char *fmt, ...) XM_PRINTF(6, 7);
/* For its ops, where the row does not depend on the run. */
void xm_staged_describe(const struct xm_primitive *p, const struct xm_operand *operands,
                        char *out, size_t out_bytes);

/* Allocates a zeroed primitive of `bytes` whose first member is struct xm_primitive, with
 * a reference to the engine; NULL: out of memory (recorded). */
void *xm_primitive_new(size_t bytes, const struct xm_primitive_ops *ops,
                       struct xm_engine *engine, struct xm_error *err);
/* Gives back what xm_primitive_new took; NULL is allowed. */
void xm_primitive_free(struct xm_primitive *p);
/* Whether the operand is present, has this element type and room for its shape: kernels
 * trust what passes here. */
enum xm_status xm_operand_check(const struct xm_operand *o, const char *name,
                                enum xm_element element, struct xm_error *err);
/* Whether it has so many elements; whether all that, and it is `rows` rows of `cols`. */
enum xm_status xm_operand_check_elements(const struct xm_operand *o, const char *name,
                                         uint64_t n, struct xm_error *err);
enum xm_status xm_operand_check_rows(const struct xm_operand *o, const char *name,
                                     enum xm_element element, uint64_t rows,
                                     uint64_t cols, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
