/* SPDX-License-Identifier: Apache-2.0
 *
 * A stage is one step of a primitive: a variant table and the kernels built from its rows.
 *
 * xm_stage_build builds the rows that the device can run, best first, up to the first one that
 * builds and never refuses a shape. Later rows run through XM_FORCE only, and are built then. A row
 * that the device's compiler refuses is left out.
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
    /* its table, and which of its rows do not build; problem NULL: each run has its own problem */
    struct xm_pick pick;
    struct xm_engine *engine; /* the primitive's                                        */
    struct xm_kernel *kernel[XM_STAGE_ROWS]; /* the engine's; NULL: not built           */
    char defines[XM_STAGE_DEFINES];
};

/* The row and kernel that run a step for one problem. */
struct xm_choice {
    const struct xm_variant *row;
    struct xm_kernel *kernel;
};

/* XM_NOT_BUILT, with the first compiler error: the row that XM_FORCE names does not build, or a row
 * does not build and no row that takes every shape does. */
enum xm_status xm_stage_build(struct xm_stage *s, struct xm_engine *engine,
                              const struct xm_variant_table *table, const char *defines,
                              struct xm_error *err);
/* Like xm_stage_build for a step that has one problem, which must outlive the stage: builds only
 * the row that will run it. The functions below then ignore their `problem`. Set s->pick.problems
 * before, or leave it empty. */
enum xm_status xm_stage_build_for(struct xm_stage *s, struct xm_engine *engine,
                                  const struct xm_variant_table *table,
                                  const void *problem, const char *defines,
                                  struct xm_error *err);
enum xm_status xm_stage_choose(const struct xm_stage *s, const void *problem,
                               struct xm_choice *out, struct xm_error *err);
/* Returns whether the row that would run writes prepared rows (primitives/form.h). */
bool xm_stage_emits(const struct xm_stage *s, const void *problem);
/* Returns the name of the row that would run; "none" if every row refuses. */
const char *xm_stage_describe(const struct xm_stage *s, const void *problem);

/* Chooses the row for the problem and enqueues its kernel (xm_launch). */
enum xm_status xm_stage_run(const struct xm_stage *s, const void *problem,
                            const struct xm_counts *counts, const struct xm_args *args,
                            const struct xm_run *run, struct xm_error *err);
/* Like xm_stage_run for a step with the single axis XM_UNITS. */
enum xm_status xm_stage_go(const struct xm_stage *s, const void *problem, uint64_t units,
                           const struct xm_args *args, const struct xm_run *run,
                           struct xm_error *err);

/* A primitive of one step. */
struct xm_staged {
    struct xm_primitive base;
    struct xm_stage stage;
    const void *desc; /* a copy of its descriptor */
};
/* What all primitives of one kind share. */
struct xm_staged_kind {
    struct xm_primitive_ops ops;
    const struct xm_variant_table *table;
    size_t desc_bytes;
    /* the rows accept or refuse by the descriptor alone: no run has its own problem */
    bool is_problem;
};
/* Creates a primitive of one step with a copy of `desc`; its kernels are built with these options
 * (printf). On success the caller references what the descriptor points to. */
enum xm_status xm_staged_create(const struct xm_staged_kind *kind,
                                struct xm_engine *engine, const void *desc,
                                struct xm_primitive **out, struct xm_error *err,
                                const char *fmt, ...) XM_PRINTF(6, 7);
/* For member `describe` of its ops, if the row does not depend on the run. */
void xm_staged_describe(const struct xm_primitive *p, const struct xm_operand *operands,
                        char *out, size_t out_bytes);

/* Allocates a zeroed primitive of `bytes` whose first member is struct xm_primitive, with
 * a reference to the engine; NULL: out of memory (recorded). */
void *xm_primitive_new(size_t bytes, const struct xm_primitive_ops *ops,
                       struct xm_engine *engine, struct xm_error *err);
/* Frees the primitive and its reference to the engine; NULL is allowed. */
void xm_primitive_free(struct xm_primitive *p);
/* XM_INVALID unless the operand is present, has this element type and a buffer large enough for its
 * shape: kernels trust operands that pass. */
enum xm_status xm_operand_check(const struct xm_operand *o, const char *name,
                                enum xm_element element, struct xm_error *err);
/* XM_INVALID unless the operand has n elements. */
enum xm_status xm_operand_check_elements(const struct xm_operand *o, const char *name,
                                         uint64_t n, struct xm_error *err);
/* xm_operand_check, and XM_INVALID unless the operand is `rows` rows of `cols` elements. */
enum xm_status xm_operand_check_rows(const struct xm_operand *o, const char *name,
                                     enum xm_element element, uint64_t rows,
                                     uint64_t cols, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
