/* SPDX-License-Identifier: Apache-2.0
 *
 * reduce, softmax and top-k: x is seen as [outer, n, inner] around the axes.
 */
#include "primitives/reduce/reduce.h"

#include <stdio.h>

#include "primitives/stage.h"
#include "primitives/tables.h"

/* The products of a shape's dimensions before, in and behind the reduced axes. */
struct around {
    uint64_t outer, n, inner;
};

static const char *
not_last_axis(const void *problem)
{
    const struct around *a = problem;
    return a->inner == 1 ? NULL : "the axis is not the innermost";
}

/* clang-format off */
static const struct xm_variant reduce_variants[] = {
    {"reduce_ref", XM_FAMILY_ANY, 0, NULL, {XM_ITEM}},
};
static const struct xm_variant softmax_variants[] = {
    {"softmax_vec", XM_FAMILY_VEC, 0, not_last_axis, {XM_SPAN}},
    {"softmax_sg",  XM_FAMILY_SG,  0, not_last_axis, {XM_GROUP, XM_SUB_GROUP_ITEMS}},
    {"softmax_gen", XM_FAMILY_GEN, 0, not_last_axis, {XM_GROUP, XM_GROUP_ITEMS}},
    {"softmax_ref", XM_FAMILY_ANY, 0, NULL,          {XM_ITEM}},
};
static const struct xm_variant topk_variants[] = {
    {"topk_gen", XM_FAMILY_GEN, 0, NULL, {XM_GROUP, XM_GROUP_ITEMS}},
    {"topk_ref", XM_FAMILY_ANY, 0, NULL, {XM_ITEM}},
};
/* clang-format on */
const struct xm_variant_table xm_reduce_table = XM_TABLE("reduce", reduce_variants);
const struct xm_variant_table xm_softmax_table = XM_TABLE("softmax", softmax_variants);
const struct xm_variant_table xm_topk_table = XM_TABLE("topk", topk_variants);

static enum xm_status
look_around(const struct xm_operand *x, uint32_t first, uint32_t n_axes,
            struct around *out, struct xm_error *err)
{
    *out = (struct around){1, 1, 1};
    if (first > x->rank || n_axes > x->rank - first)
        return xm_fail(err, XM_INVALID, "axes %u to %u are outside x, which has rank %u",
                       first, first + n_axes, x->rank);
    for (uint32_t d = 0; d < x->rank; d++) {
        uint64_t *part = d < first            ? &out->outer
                         : d < first + n_axes ? &out->n
                                              : &out->inner;
        *part *= (uint64_t)x->dim[d];
    }
    return XM_OK;
}

static enum xm_status
run_reduce(const struct xm_primitive *p, const struct xm_operand *operands,
           const struct xm_run *run, struct xm_error *err)
{
    const struct xm_staged *s = (const struct xm_staged *)p;
    const struct xm_reduce_desc *d = s->desc;
    const struct xm_operand *x = &operands[XM_REDUCE_X], *y = &operands[XM_REDUCE_Y];
    struct around a;
    XM_TRY(xm_operand_check(x, "x", d->src, err));
    XM_TRY(xm_operand_check(y, "y", d->dst, err));
    XM_TRY(look_around(x, d->first_axis, d->n_axes, &a, err));
    XM_TRY(xm_operand_check_elements(y, "y", a.outer * a.inner, err));
    struct xm_args args = {.n = 0};
    xm_put_buffer(&args, "x", x->buffer);
    xm_put_buffer(&args, "y", y->buffer);
    xm_put_ulong(&args, "n", a.n);
    xm_put_ulong(&args, "inner", a.inner);
    return xm_stage_go(&s->stage, &a, a.outer * a.inner, &args, run, err);
}

static enum xm_status
run_softmax(const struct xm_primitive *p, const struct xm_operand *operands,
            const struct xm_run *run, struct xm_error *err)
{
    const struct xm_staged *s = (const struct xm_staged *)p;
    const struct xm_softmax_desc *d = s->desc;
    const struct xm_operand *x = &operands[XM_SOFTMAX_X], *y = &operands[XM_SOFTMAX_Y];
    struct around a;
    XM_TRY(xm_operand_check(x, "x", d->src, err));
    XM_TRY(xm_operand_check(y, "y", d->dst, err));
    XM_TRY(look_around(x, d->axis, 1, &a, err));
    XM_TRY(xm_operand_check_elements(y, "y", a.outer * a.n * a.inner, err));
    uint64_t columns = a.n ? a.outer * a.inner : 0;
    struct xm_args args = {.n = 0};
    xm_put_buffer(&args, "x", x->buffer);
    xm_put_buffer(&args, "y", y->buffer);
    xm_put_ulong(&args, "columns", columns);
    xm_put_ulong(&args, "n", a.n);
    xm_put_ulong(&args, "inner", a.inner);
    return xm_stage_go(&s->stage, &a, columns, &args, run, err);
}

static enum xm_status
run_topk(const struct xm_primitive *p, const struct xm_operand *operands,
         const struct xm_run *run, struct xm_error *err)
{
    const struct xm_staged *s = (const struct xm_staged *)p;
    const struct xm_topk_desc *d = s->desc;
    const struct xm_operand *x = &operands[XM_TOPK_X], *ids = &operands[XM_TOPK_IDS];
    const struct xm_operand *values = &operands[XM_TOPK_VALUES];
    XM_TRY(xm_operand_check(x, "x", d->src, err));
    XM_TRY(xm_operand_check(values, "values", d->values, err));
    XM_TRY(xm_operand_check(ids, "ids", d->ids, err));
    if (x->rank == 0 || values->rank == 0)
        return xm_fail(err, XM_INVALID, "topk: the operand must have rank 1 or more");
    uint64_t rows = xm_operand_rows(x), n = (uint64_t)x->dim[x->rank - 1];
    uint64_t k = (uint64_t)values->dim[values->rank - 1];
    XM_TRY(xm_operand_check_elements(values, "values", rows * k, err));
    XM_TRY(xm_operand_check_elements(ids, "ids", rows * k, err));
    if (k > n)
        return xm_fail(err, XM_INVALID, "topk: k is %llu, but the axis has %llu elements",
                       (unsigned long long)k, (unsigned long long)n);
    struct xm_args args = {.n = 0};
    xm_put_buffer(&args, "x", x->buffer);
    xm_put_buffer(&args, "values", values->buffer);
    xm_put_buffer(&args, "ids", ids->buffer);
    xm_put_ulong(&args, "n", n);
    xm_put_ulong(&args, "k", k);
    return xm_stage_go(&s->stage, NULL, k ? rows : 0, &args, run, err);
}

static void
describe_softmax(const struct xm_primitive *p, const struct xm_operand *operands,
                 char *out, size_t out_bytes)
{
    const struct xm_staged *s = (const struct xm_staged *)p;
    const struct xm_softmax_desc *d = s->desc;
    struct around a;
    bool fits = look_around(&operands[XM_SOFTMAX_X], d->axis, 1, &a, NULL) == XM_OK;
    snprintf(out, out_bytes, "%s", fits ? xm_stage_describe(&s->stage, &a) : "none");
}

static const struct xm_staged_kind reduce = {{"reduce", NULL, run_reduce,
                                              xm_staged_describe, xm_primitive_free,
                                              XM_ROLES(xm_roles_1_1)},
                                             &xm_reduce_table,
                                             sizeof(struct xm_reduce_desc)},
                                   softmax = {{"softmax", NULL, run_softmax,
                                               describe_softmax, xm_primitive_free,
                                               XM_ROLES(xm_roles_1_1)},
                                              &xm_softmax_table,
                                              sizeof(struct xm_softmax_desc)},
                                   topk = {{"topk", NULL, run_topk, xm_staged_describe,
                                            xm_primitive_free, XM_ROLES(xm_roles_1_2)},
                                           &xm_topk_table,
                                           sizeof(struct xm_topk_desc)};

static bool
is_known(enum xm_element e)
{
    return e == XM_F16 || e == XM_F32 || e == XM_I32 || e == XM_I64 || e == XM_U8 ||
           e == XM_BOOL;
}

enum xm_status
xm_reduce_create(struct xm_engine *engine, const struct xm_reduce_desc *desc,
                 struct xm_primitive **out, struct xm_error *err)
{
    if (!is_known(desc->src) || !is_known(desc->dst))
        return xm_fail(err, XM_UNSUPPORTED, "reduce: no kernel reads %s and writes %s",
                       xm_element_text(desc->src), xm_element_text(desc->dst));
    return xm_staged_create(
        &reduce, engine, desc, out, err,
        "-DREDUCE=%d -DSRC=%s -DDST=%s -DINTEGER=%d -DDST_IS_INTEGER=%d", (int)desc->fn,
        xm_element_text(desc->src), xm_element_text(desc->dst),
        xm_element_is_int(desc->src), xm_element_is_int(desc->dst));
}

enum xm_status
xm_softmax_create(struct xm_engine *engine, const struct xm_softmax_desc *desc,
                  struct xm_primitive **out, struct xm_error *err)
{
    return xm_staged_create(&softmax, engine, desc, out, err, "-DSRC=%s -DDST=%s",
                            xm_element_text(desc->src), xm_element_text(desc->dst));
}

enum xm_status
xm_topk_create(struct xm_engine *engine, const struct xm_topk_desc *desc,
               struct xm_primitive **out, struct xm_error *err)
{
    if (!is_known(desc->src) || !is_known(desc->values))
        return xm_fail(err, XM_UNSUPPORTED, "topk: no kernel reads %s and writes %s",
                       xm_element_text(desc->src), xm_element_text(desc->values));
    return xm_staged_create(&topk, engine, desc, out, err,
                            "-DSRC=%s -DVALUES=%s -DIDS=%s -DLARGEST=%d -DINTEGER=%d",
                            xm_element_text(desc->src), xm_element_text(desc->values),
                            xm_element_text(desc->ids), desc->largest,
                            xm_element_is_int(desc->src));
}
