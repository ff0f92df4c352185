/* SPDX-License-Identifier: Apache-2.0
 *
 * glu: the gated product of two operands of the same shape.
 */
#include "primitives/eltwise/eltwise.h"
#include "primitives/stage.h"
#include "primitives/tables.h"
#include "runtime/kernel_defines.h"

/* clang-format off */
static const struct xm_variant glu_variants[] = {
    {"glu_vec", XM_FAMILY_VEC, 0, NULL, {XM_SPAN, 0, {XM_UNITS, 16}}},
    {"glu_ref", XM_FAMILY_ANY, 0, NULL, {XM_ITEM}},
};
/* clang-format on */
const struct xm_variant_table xm_glu_table = {"glu", glu_variants,
                                              XM_ARRAY_LEN(glu_variants)};

struct glu {
    struct xm_staged base;
    struct xm_glu_desc desc;
};

static enum xm_status
run(const struct xm_primitive *p, const struct xm_operand *operands,
    const struct xm_run *run, struct xm_error *err)
{
    static const char *const names[] = {"gate", "up", "y"};
    const struct glu *s = (const struct glu *)p;
    uint64_t n = xm_operand_elements(&operands[XM_GLU_GATE]);
    struct xm_args args = {.n = 0};
    for (int i = 0; i < XM_GLU_N_OPERANDS; i++) {
        XM_TRY(xm_operand_check(&operands[i], names[i], s->desc.element, err));
        if (xm_operand_elements(&operands[i]) != n)
            return xm_fail(err, XM_INVALID, "'%s' has %llu elements, 'gate' %llu",
                           names[i],
                           (unsigned long long)xm_operand_elements(&operands[i]),
                           (unsigned long long)n);
        xm_put_buffer(&args, names[i], operands[i].buffer);
    }
    xm_put_ulong(&args, "n", n);
    return xm_stage_go(&s->base.stage, NULL, n, &args, run, err);
}

static const struct xm_primitive_ops ops = {"glu", NULL, run, xm_staged_describe,
                                            xm_primitive_free};

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
    char defines[XM_STAGE_DEFINES];
    const char *why = xm_glu_supports(desc);
    if (why)
        return xm_fail(err, XM_UNSUPPORTED, "glu: %s", why);
    struct glu *s = xm_primitive_new(sizeof(*s), &ops, engine, err);
    if (!s)
        return XM_NO_MEMORY;
    s->desc = *desc;
    xm_defines_print(defines, sizeof(defines), "-DSRC=%s -DACT=%d",
                     xm_element_text(desc->element), (int)desc->activation);
    return xm_staged_build(&s->base, &xm_glu_table, defines, out, err);
}
