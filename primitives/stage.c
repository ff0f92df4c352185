/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds and runs the kernels of one variant table; helpers that every primitive uses.
 */
#include "primitives/stage.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "primitives/matrix_engine.h"
#include "runtime/kernel_defines.h"
#include "runtime/util/memory.h"

static bool
device_takes(const struct xm_variant *row, const struct xm_device_info *device)
{
    struct xm_variant any_shape = *row;
    any_shape.refuses = NULL;
    return xm_variant_refusal(&any_shape, device, NULL) == NULL &&
           xm_variant_drawback(row, device) == NULL;
}

static enum xm_status
row_kernel(const struct xm_stage *s, const struct xm_variant *row, struct xm_kernel **out,
           struct xm_error *err)
{
    const struct xm_device_info *device = xm_engine_info(s->engine);
    char defines[XM_STAGE_DEFINES + 128];
    xm_defines_print(defines, sizeof(defines), "%s%s", s->defines,
                     xm_variant_defines(row, device).text);
    return xm_engine_kernel(s->engine, xm_variant_kernel(row), defines, out, err);
}

/* Builds a row; marks it as left out if the compiler refuses it, which is no failure. */
static enum xm_status
build_row(struct xm_stage *s, size_t row, struct xm_error *err)
{
    struct xm_error why = {0};
    enum xm_status status =
        row_kernel(s, &s->pick.table->rows[row], &s->kernel[row], &why);
    if (status == XM_NOT_BUILT)
        xm_variant_leave_out(&s->pick, row, &why);
    else if (status != XM_OK)
        return xm_fail(err, status, "%s", why.text);
    return XM_OK;
}

enum xm_status
xm_stage_build(struct xm_stage *s, struct xm_engine *engine,
               const struct xm_variant_table *table, const char *defines,
               struct xm_error *err)
{
    assert(table->n <= XM_STAGE_ROWS);
    s->pick.table = table;
    s->engine = engine;
    xm_defines_print(s->defines, sizeof(s->defines), "%s", defines);
    XM_TRY(xm_variant_prepare(&s->pick, engine, err));
    const size_t row = s->pick.forced.row;
    if (s->pick.forced.has_row &&
        device_takes(&table->rows[row], xm_engine_info(engine))) {
        enum xm_status status = row_kernel(s, &table->rows[row], &s->kernel[row], err);
        xm_error_prefix(err, "%s: XM_FORCE asks for this variant", table->step);
        return status;
    }
    bool takes_all = false; /* a row that never refuses a shape was built */
    for (size_t i = 0; i < table->n && !takes_all; i++) {
        if (!device_takes(&table->rows[i], xm_engine_info(engine)))
            continue;
        XM_TRY(build_row(s, i, err));
        takes_all = s->kernel[i] && !table->rows[i].refuses;
    }
    if (s->pick.not_built && !takes_all)
        return xm_fail(err, XM_NOT_BUILT, "%s: no kernel variant builds: %s", table->step,
                       s->pick.first.text);
    return XM_OK;
}

static enum xm_status
build_picked(void *ctx, size_t i, struct xm_error *err)
{
    struct xm_stage *s = ctx;
    const size_t row = s->pick.row;
    (void)i;
    return row_kernel(s, &s->pick.table->rows[row], &s->kernel[row], err);
}

enum xm_status
xm_stage_build_for(struct xm_stage *s, struct xm_engine *engine,
                   const struct xm_variant_table *table, const void *problem,
                   const char *defines, struct xm_error *err)
{
    s->pick.table = table;
    s->pick.problem = problem;
    s->engine = engine;
    xm_defines_print(s->defines, sizeof(s->defines), "%s", defines);
    return xm_variant_build(&s->pick, 1, engine, build_picked, s, err);
}

static enum xm_status
pick(const struct xm_stage *s, const void *problem, size_t *row, struct xm_error *err)
{
    *row = s->pick.row;
    return s->pick.problem
               ? XM_OK
               : xm_variant_pick(&s->pick, xm_engine_info(s->engine), problem, row, err);
}

enum xm_status
xm_stage_choose(const struct xm_stage *s, const void *problem, struct xm_choice *out,
                struct xm_error *err)
{
    size_t i = 0;
    XM_TRY(pick(s, problem, &i, err));
    out->row = &s->pick.table->rows[i];
    out->kernel = s->kernel[i];
    if (out->kernel)
        return XM_OK;
    return row_kernel(s, out->row, &out->kernel, err);
}

bool
xm_stage_emits(const struct xm_stage *s, const void *problem)
{
    struct xm_choice choice;
    return xm_stage_choose(s, problem, &choice, NULL) == XM_OK && choice.row->emits;
}

const char *
xm_stage_describe(const struct xm_stage *s, const void *problem)
{
    size_t i = 0;
    return pick(s, problem, &i, NULL) == XM_OK ? s->pick.table->rows[i].name : "none";
}

enum xm_status
xm_stage_run(const struct xm_stage *s, const void *problem,
             const struct xm_counts *counts, const struct xm_args *args,
             const struct xm_run *run, struct xm_error *err)
{
    struct xm_choice c;
    XM_TRY(xm_stage_choose(s, problem, &c, err));
    return xm_launch(&c.row->launch, c.kernel, counts, args, run->queue, err);
}

enum xm_status
xm_stage_go(const struct xm_stage *s, const void *problem, uint64_t units,
            const struct xm_args *args, const struct xm_run *run, struct xm_error *err)
{
    const struct xm_counts counts = {.n = {[XM_UNITS] = units}};
    return xm_stage_run(s, problem, &counts, args, run, err);
}

enum xm_status
xm_staged_create(const struct xm_staged_kind *kind, struct xm_engine *engine,
                 const void *desc, struct xm_primitive **out, struct xm_error *err,
                 const char *fmt, ...)
{
    char defines[XM_STAGE_DEFINES];
    struct xm_staged *s =
        xm_primitive_new(sizeof(*s) + kind->desc_bytes, &kind->ops, engine, err);
    if (!s)
        return XM_NO_MEMORY;
    s->desc = memcpy(s + 1, desc, kind->desc_bytes);
    va_list ap;
    va_start(ap, fmt);
    xm_defines_print_v(defines, sizeof(defines), fmt, ap);
    va_end(ap);
    enum xm_status status =
        kind->is_problem
            ? xm_stage_build_for(&s->stage, engine, kind->table, s->desc, defines, err)
            : xm_stage_build(&s->stage, engine, kind->table, defines, err);
    if (status == XM_OK)
        *out = &s->base;
    else
        xm_primitive_free(&s->base);
    return status;
}

void
xm_staged_describe(const struct xm_primitive *p, const struct xm_operand *operands,
                   char *out, size_t out_bytes)
{
    (void)operands;
    snprintf(out, out_bytes, "%s",
             xm_stage_describe(&((const struct xm_staged *)p)->stage, NULL));
}

void *
xm_primitive_new(size_t bytes, const struct xm_primitive_ops *ops,
                 struct xm_engine *engine, struct xm_error *err)
{
    struct xm_primitive *p = xm_calloc(1, bytes);
    if (!p) {
        xm_no_memory(err, "a primitive '%s'", ops->name);
        return NULL;
    }
    p->ops = ops;
    p->engine = engine;
    xm_engine_ref(engine);
    return p;
}

void
xm_primitive_free(struct xm_primitive *p)
{
    if (!p)
        return;
    xm_engine_unref(p->engine);
    xm_free(p);
}

enum xm_status
xm_operand_check(const struct xm_operand *o, const char *name, enum xm_element element,
                 struct xm_error *err)
{
    uint64_t n = 1, bytes = 0;
    if (!o->buffer)
        return xm_fail(err, XM_INVALID, "operand '%s' is absent", name);
    if (o->element != element)
        return xm_fail(err, XM_INVALID, "operand '%s' has element type %s, expected %s",
                       name, xm_element_text(o->element), xm_element_text(element));
    bool fits = o->rank <= XM_OPERAND_RANK;
    for (uint32_t d = 0; fits && d < o->rank; d++)
        fits = o->dim[d] >= 0 && xm_mul_size(n, (uint64_t)o->dim[d], &n);
    if (!fits || !xm_element_bytes(element, n, &bytes) ||
        bytes > xm_buffer_bytes(o->buffer))
        return xm_fail(err, XM_INVALID,
                       "operand '%s' has %" PRIu64
                       " elements, but its buffer has only %" PRIu64 " bytes",
                       name, n, xm_buffer_bytes(o->buffer));
    return XM_OK;
}

enum xm_status
xm_operand_check_elements(const struct xm_operand *o, const char *name, uint64_t n,
                          struct xm_error *err)
{
    if (xm_operand_elements(o) == n)
        return XM_OK;
    return xm_fail(err, XM_INVALID, "'%s' has %" PRIu64 " elements, expected %" PRIu64,
                   name, xm_operand_elements(o), n);
}

enum xm_status
xm_operand_check_rows(const struct xm_operand *o, const char *name,
                      enum xm_element element, uint64_t rows, uint64_t cols,
                      struct xm_error *err)
{
    XM_TRY(xm_operand_check(o, name, element, err));
    if (o->rank > 0 && (uint64_t)o->dim[o->rank - 1] == cols &&
        xm_operand_rows(o) == rows)
        return XM_OK;
    return xm_fail(err, XM_INVALID,
                   "operand '%s' must be %" PRIu64 " rows of %" PRIu64 " elements", name,
                   rows, cols);
}
