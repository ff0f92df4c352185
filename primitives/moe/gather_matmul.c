/* SPDX-License-Identifier: Apache-2.0
 *
 * gather_matmul: each (token, slot) with the weights of its expert, row by row; no
 * sorting, no scratch beyond the prepared activations.
 */
#include <stdio.h>

#include "primitives/args.h"
#include "primitives/form.h"
#include "primitives/moe/moe.h"
#include "primitives/tables.h"
#include "runtime/util/memory.h"

enum { GEN_ROWS = 4 }; /* rows of a work-group of gather_matmul_gen, a sub-group of _sg */

struct gather_matmul {
    struct xm_primitive base;
    struct xm_device_weight *weight;
    struct xm_buffer *bias;
    enum xm_element src, dst, ids;
    struct xm_pick pick;
    struct xm_kernel *prepare, *kernel;
};

static const char *
not_in_planes(const void *problem)
{
    return xm_weight_not_in_planes(problem);
}

static const char *
not_in_words(const void *problem)
{
    return xm_weight_not_in_words(problem, 1);
}

/* clang-format off */
enum { ROW_VEC, ROW_SG, ROW_GEN, ROW_REF };
static const struct xm_variant rows[] = {
    [ROW_VEC] = {"gather_matmul_vec", XM_FAMILY_VEC, 0, not_in_planes},
    [ROW_SG] = {"gather_matmul_sg", XM_FAMILY_SG, 0, not_in_words},
    [ROW_GEN] = {"gather_matmul_gen", XM_FAMILY_GEN, 0, NULL},
    [ROW_REF] = {"gather_matmul_ref", XM_FAMILY_ANY, 0, NULL},
};
/* clang-format on */
const struct xm_variant_table xm_gather_matmul_table = {"gather_matmul", rows,
                                                        XM_ARRAY_LEN(rows)};

const char *
xm_gather_matmul_supports(const struct xm_device_info *device, const struct xm_weight *w)
{
    (void)device; /* gather_matmul_ref runs anywhere */
    return xm_weight_unreadable(w);
}

/* Sizes of one run. */
struct sizes {
    uint64_t tokens, slots, a_slots;
};

static struct sizes
sizes_of(const struct xm_operand *o)
{
    const struct xm_operand *a = &o[XM_GATHER_MATMUL_A], *ids = &o[XM_GATHER_MATMUL_IDS];
    struct sizes s = {xm_operand_rows(ids), (uint64_t)ids->dim[ids->rank - 1], 0};
    s.a_slots = s.tokens ? xm_operand_rows(a) / s.tokens : 0;
    return s;
}

static uint64_t
prepared_bytes(const struct gather_matmul *g, uint64_t tokens)
{
    const struct xm_weight *w = &g->weight->host;
    const struct xm_rows_form form = xm_form_for(XM_FORM_PLANES, w);
    return xm_form_bytes(&form, w->cols, tokens);
}

static enum xm_status
gather_matmul_plan(const struct xm_primitive *p, const struct xm_operand *o,
                   uint64_t *scratch_bytes, struct xm_error *err)
{
    const struct gather_matmul *g = (const struct gather_matmul *)p;
    uint64_t rows_of_a = xm_operand_rows(&o[XM_GATHER_MATMUL_A]);
    (void)err;
    *scratch_bytes = 0;
    if (g->pick.row == ROW_VEC)
        *scratch_bytes = xm_scratch_bytes(p, prepared_bytes(g, rows_of_a));
    return XM_OK;
}

static void
put_sizes(const struct gather_matmul *g, const struct sizes *s, struct xm_args *a)
{
    xm_args_uint(a, g->weight->host.experts);
    xm_args_uint(a, g->weight->host.rows);
    xm_args_uint(a, g->weight->host.cols);
    xm_args_uint(a, s->a_slots);
}

/* The kernels that need nothing prepared. */
static enum xm_status
run_plain(const struct gather_matmul *g, const struct xm_operand *o,
          const struct sizes *s, const struct xm_run *run, struct xm_error *err)
{
    struct xm_args a = {.n = 0};
    xm_args_weight(&a, g->weight);
    xm_args_buffer(&a, o[XM_GATHER_MATMUL_A].buffer);
    xm_args_buffer(&a, o[XM_GATHER_MATMUL_IDS].buffer);
    xm_args_buffer(&a, g->bias);
    xm_args_buffer(&a, o[XM_GATHER_MATMUL_OUT].buffer);
    put_sizes(g, s, &a);
    if (g->pick.row == ROW_SG)
        return xm_args_run_sub_groups(&a, run->queue, g->kernel,
                                      (g->weight->host.rows + GEN_ROWS - 1) / GEN_ROWS,
                                      s->tokens, s->slots, err);
    if (g->pick.row == ROW_GEN)
        return xm_args_run_groups(&a, run->queue, g->kernel, XM_GROUP_ITEMS,
                                  (g->weight->host.rows + GEN_ROWS - 1) / GEN_ROWS,
                                  s->tokens, s->slots, err);
    return xm_args_run(&a, run->queue, g->kernel, false, g->weight->host.rows, s->tokens,
                       s->slots, err);
}

static enum xm_status
run_vec(const struct gather_matmul *g, const struct xm_operand *o, const struct sizes *s,
        const struct xm_run *run, struct xm_scratch *scratch, struct xm_error *err)
{
    const struct xm_weight *w = &g->weight->host;
    uint64_t rows_of_a = s->a_slots * s->tokens;
    struct xm_buffer *planes;
    XM_TRY(xm_scratch_take(scratch, prepared_bytes(g, rows_of_a), &planes, err));
    XM_TRY(xm_form_make(XM_FORM_PLANES, g->prepare, w, o[XM_GATHER_MATMUL_A].buffer,
                        rows_of_a, planes, run->queue, err));

    uint64_t per_item =
        xm_rows_per_item(xm_engine_info(g->base.engine), w->rows, s->tokens * s->slots);
    struct xm_args a = {.n = 0};
    xm_args_weight(&a, g->weight);
    xm_args_buffer(&a, planes);
    xm_args_buffer(&a, o[XM_GATHER_MATMUL_IDS].buffer);
    xm_args_buffer(&a, g->bias);
    xm_args_buffer(&a, o[XM_GATHER_MATMUL_OUT].buffer);
    put_sizes(g, s, &a);
    xm_args_uint(&a, per_item);
    return xm_args_run(&a, run->queue, g->kernel, true,
                       (w->rows + per_item - 1) / per_item, s->tokens, s->slots, err);
}

static enum xm_status
gather_matmul_run(const struct xm_primitive *p, const struct xm_operand *o,
                  const struct xm_run *run, struct xm_error *err)
{
    const struct gather_matmul *g = (const struct gather_matmul *)p;
    const struct sizes s = sizes_of(o);
    if (s.tokens == 0 || s.slots == 0)
        return XM_OK;
    if (s.a_slots == 0 || s.a_slots > INT32_MAX)
        return xm_fail(err, XM_INVALID, "the activations have %llu slots",
                       (unsigned long long)s.a_slots);
    if (g->pick.row != ROW_VEC)
        return run_plain(g, o, &s, run, err);
    struct xm_scratch scratch;
    xm_scratch_begin(&scratch, p, run);
    enum xm_status status = run_vec(g, o, &s, run, &scratch, err);
    xm_scratch_end(&scratch);
    return status;
}

static void
gather_matmul_describe(const struct xm_primitive *p, const struct xm_operand *o,
                       char *out, size_t out_bytes)
{
    (void)o;
    snprintf(out, out_bytes, "%s",
             rows[((const struct gather_matmul *)p)->pick.row].name);
}

static void
gather_matmul_destroy(struct xm_primitive *p)
{
    struct gather_matmul *g = (struct gather_matmul *)p;
    xm_device_weight_unref(g->weight);
    xm_buffer_unref(g->bias);
    xm_engine_unref(p->engine);
    xm_free(p);
}

static const struct xm_primitive_ops gather_matmul_ops = {
    "gather_matmul", gather_matmul_plan, gather_matmul_run, gather_matmul_describe,
    gather_matmul_destroy};

static enum xm_status
build(void *ctx, size_t i, struct xm_error *err)
{
    struct gather_matmul *g = ctx;
    struct xm_engine *engine = g->base.engine;
    const struct xm_weight *w = &g->weight->host;
    (void)i;
    if (g->pick.row == ROW_VEC)
        XM_TRY(xm_form_kernel(engine, XM_FORM_PLANES, g->src, w, &g->prepare, err));
    return xm_weight_kernel(engine, rows[g->pick.row].name, xm_one_weight(w), &g->kernel,
                            err, "-DSRC=%s -DDST=%s -DIDS=%s -DROWS=%d",
                            xm_element_text(g->src), xm_element_text(g->dst),
                            xm_element_text(g->ids), GEN_ROWS);
}

static const char *
not_supported(const struct xm_gather_matmul_desc *d)
{
    if ((d->src != XM_F16 && d->src != XM_F32) || (d->dst != XM_F16 && d->dst != XM_F32))
        return "activations are neither f16 nor f32";
    if (d->ids != XM_I32 && d->ids != XM_I64)
        return "ids are neither i32 nor i64";
    return xm_weight_unreadable(&d->weight->host);
}

enum xm_status
xm_gather_matmul_create(struct xm_engine *engine,
                        const struct xm_gather_matmul_desc *desc,
                        struct xm_primitive **out, struct xm_error *err)
{
    const char *why = not_supported(desc);
    if (why)
        return xm_fail(err, XM_UNSUPPORTED, "gather_matmul: %s", why);
    struct gather_matmul *g = xm_calloc(1, sizeof(*g));
    if (!g)
        return xm_fail(err, XM_NO_MEMORY, "no memory for a gather_matmul primitive");
    g->base.ops = &gather_matmul_ops;
    g->base.engine = engine;
    xm_engine_ref(engine);
    g->weight = desc->weight;
    xm_device_weight_ref(g->weight);
    g->bias = desc->bias;
    if (g->bias)
        xm_buffer_ref(g->bias);
    g->src = desc->src;
    g->dst = desc->dst;
    g->ids = desc->ids;
    g->pick =
        (struct xm_pick){.table = &xm_gather_matmul_table, .problem = &g->weight->host};
    enum xm_status status = xm_variant_build(&g->pick, 1, engine, build, g, err);
    if (status != XM_OK) {
        gather_matmul_destroy(&g->base);
        return status;
    }
    *out = &g->base;
    return XM_OK;
}
