/* SPDX-License-Identifier: Apache-2.0
 *
 * glu: the gated product of two operands of the same shape.
 */
#include "primitives/eltwise/eltwise.h"
#include "primitives/stage.h"
#include "primitives/tables.h"

/* clang-format off */
static const struct xm_variant rows[] = {
    {"glu_vec", XM_FAMILY_VEC, 0, NULL, {XM_SPAN, 0, {XM_UNITS, 16}}},
    {"glu_ref", XM_FAMILY_ANY, 0, NULL, {XM_ITEM}},
};
/* clang-format on */
const struct xm_variant_table xm_glu_table = XM_TABLE("glu", rows);

static enum xm_status
run(const struct xm_primitive *p, const struct xm_operand *operands,
    const struct xm_run *run, struct xm_error *err)
{
    static const char *const names[] = {"gate", "up", "y"};
    const struct xm_staged *s = (const struct xm_staged *)p;
    const struct xm_glu_desc *d = s->desc;
    uint64_t n = xm_operand_elements(&operands[XM_GLU_GATE]);
    struct xm_args args = {.n = 0};
    for (int i = 0; i < XM_GLU_N_OPERANDS; i++) {
        XM_TRY(xm_operand_check(&operands[i], names[i], d->element, err));
        XM_TRY(xm_operand_check_elements(&operands[i], names[i], n, err));
        xm_put_buffer(&args, names[i], operands[i].buffer);
    }
    xm_put_ulong(&args, "n", n);
    return xm_stage_go(&s->stage, NULL, n, &args, run, err);
}

static const struct xm_staged_kind kind = {
    {"glu", NULL, run, xm_staged_describe, xm_primitive_free, XM_ROLES(xm_roles_2_1)},
    &xm_glu_table,
    sizeof(struct xm_glu_desc)};

const char *
xm_glu_supports(const struct xm_glu_desc *desc)
{
    if (desc->activation >= XM_ACT_COUNT)
        return "unknown activation";
    return desc->element == XM_F16 || desc->element == XM_F32
               ? NULL
               : "gate and up are neither f16 nor f32";
}

enum xm_status
xm_glu_create(struct xm_engine *engine, const struct xm_glu_desc *desc,
              struct xm_primitive **out, struct xm_error *err)
{
    const char *why = xm_glu_supports(desc);
    if (why)
        return xm_fail(err, XM_UNSUPPORTED, "glu: %s", why);
    return xm_staged_create(&kind, engine, desc, out, err, "-DSRC=%s -DACT=%d",
                            xm_element_text(desc->element), (int)desc->activation);
}
