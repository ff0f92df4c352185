/* SPDX-License-Identifier: Apache-2.0
 *
 * rope: one launch over all heads of all tokens. y may be x.
 */
#include "primitives/rope/rope.h"

#include "primitives/stage.h"
#include "primitives/tables.h"

/* clang-format off */
static const struct xm_variant rows[] = {
    {"rope_vec", XM_FAMILY_VEC, 0, NULL, {XM_SPAN, 0, {XM_TOKENS}}},
    {"rope_sg", XM_FAMILY_SG, 0, NULL, {XM_GROUP, XM_SUB_GROUP_ITEMS, {XM_TOKENS}}},
    {"rope_ref", XM_FAMILY_ANY, 0, NULL, {XM_ITEM, 0, {XM_ELEMENTS}}},
};
/* clang-format on */
const struct xm_variant_table xm_rope_table = XM_TABLE("rope", rows);

static bool
same_shape(const struct xm_operand *a, const struct xm_operand *b)
{
    bool same = a->rank == b->rank;
    for (uint32_t d = 0; same && d < a->rank; d++)
        same = a->dim[d] == b->dim[d];
    return same;
}

/* Checks x[B,T,heads,D] against tables [B|1,T,R]. */
static enum xm_status
check(const struct xm_rope_desc *d, const struct xm_operand *operands,
      struct xm_error *err)
{
    const struct xm_operand *x = &operands[XM_ROPE_X], *cos = &operands[XM_ROPE_COS];
    XM_TRY(xm_operand_check(x, "x", d->element, err));
    XM_TRY(xm_operand_check(cos, "cos", XM_F32, err));
    XM_TRY(xm_operand_check(&operands[XM_ROPE_SIN], "sin", XM_F32, err));
    XM_TRY(xm_operand_check(&operands[XM_ROPE_Y], "y", d->element, err));
    if (x->rank != 4 || cos->rank != 3 || !same_shape(cos, &operands[XM_ROPE_SIN]) ||
        !same_shape(x, &operands[XM_ROPE_Y]))
        return xm_fail(err, XM_INVALID,
                       "expected x, y [B,T,heads,D] and cos, sin [B|1,T,R]");
    if ((cos->dim[0] != 1 && cos->dim[0] != x->dim[0]) || cos->dim[1] != x->dim[1])
        return xm_fail(err, XM_INVALID,
                       "the tables are for %lld sequences of %lld tokens, but x has %lld "
                       "sequences of %lld tokens",
                       (long long)cos->dim[0], (long long)cos->dim[1],
                       (long long)x->dim[0], (long long)x->dim[1]);
    if (cos->dim[2] > x->dim[3] || cos->dim[2] % 2 != 0 || x->dim[3] > INT32_MAX ||
        x->dim[2] > INT32_MAX)
        return xm_fail(err, XM_INVALID,
                       "%lld rotated dimensions do not fit a head of %lld",
                       (long long)cos->dim[2], (long long)x->dim[3]);
    return XM_OK;
}

static enum xm_status
run(const struct xm_primitive *p, const struct xm_operand *operands,
    const struct xm_run *run, struct xm_error *err)
{
    const struct xm_staged *s = (const struct xm_staged *)p;
    const struct xm_operand *x = &operands[XM_ROPE_X], *cos = &operands[XM_ROPE_COS];
    XM_TRY(check(s->desc, operands, err));
    uint64_t tokens = (uint64_t)(x->dim[0] * x->dim[1]), heads = (uint64_t)x->dim[2];
    const struct xm_counts counts = {
        .n = {[XM_TOKENS] = heads ? tokens : 0, [XM_ELEMENTS] = tokens * heads}};
    struct xm_args args = {.n = 0};
    xm_put_buffer(&args, "x", x->buffer);
    xm_put_buffer(&args, "cos_table", cos->buffer);
    xm_put_buffer(&args, "sin_table", operands[XM_ROPE_SIN].buffer);
    xm_put_buffer(&args, "y", operands[XM_ROPE_Y].buffer);
    xm_put_ulong(&args, "tokens", tokens);
    xm_put_ulong(&args, "table_tokens", (uint64_t)(cos->dim[0] * cos->dim[1]));
    xm_put_uint(&args, "heads", heads);
    xm_put_uint(&args, "d", (uint64_t)x->dim[3]);
    xm_put_uint(&args, "rotated", (uint64_t)cos->dim[2]);
    return xm_stage_run(&s->stage, NULL, &counts, &args, run, err);
}

static const struct xm_staged_kind kind = {
    {"rope", NULL, run, xm_staged_describe, xm_primitive_free, XM_ROLES(xm_roles_3_1)},
    &xm_rope_table,
    sizeof(struct xm_rope_desc)};

const char *
xm_rope_supports(const struct xm_rope_desc *desc)
{
    return desc->element == XM_F16 || desc->element == XM_F32
               ? NULL
               : "heads are neither f16 nor f32";
}

enum xm_status
xm_rope_create(struct xm_engine *engine, const struct xm_rope_desc *desc,
               struct xm_primitive **out, struct xm_error *err)
{
    const char *why = xm_rope_supports(desc);
    if (why)
        return xm_fail(err, XM_UNSUPPORTED, "rope: %s", why);
    return xm_staged_create(&kind, engine, desc, out, err, "-DSRC=%s",
                            xm_element_text(desc->element));
}
