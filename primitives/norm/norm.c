/* SPDX-License-Identifier: Apache-2.0
 *
 * rms_norm: rows in one launch; any row length.
 */
#include "primitives/norm/norm.h"

#include "primitives/stage.h"
#include "primitives/tables.h"
#include "runtime/kernel_defines.h"

/* clang-format off */
static const struct xm_variant rms_norm_variants[] = {
    {"rms_norm_vec", XM_FAMILY_VEC, 0, NULL, {XM_SPAN}, .emits = true},
    {"rms_norm_sg",  XM_FAMILY_SG,  0, NULL, {XM_GROUP, XM_SUB_GROUP_ITEMS}},
    {"rms_norm_gen", XM_FAMILY_GEN, 0, NULL, {XM_GROUP, XM_GROUP_ITEMS}},
    {"rms_norm_ref", XM_FAMILY_ANY, 0, NULL, {XM_ITEM}},
};
/* clang-format on */
const struct xm_variant_table xm_rms_norm_table = {"rms_norm", rms_norm_variants,
                                                   XM_ARRAY_LEN(rms_norm_variants)};

struct rms_norm {
    struct xm_staged base;
    struct xm_rms_norm_desc desc;
};

static enum xm_status
run(const struct xm_primitive *p, const struct xm_operand *operands,
    const struct xm_run *run, struct xm_error *err)
{
    const struct rms_norm *s = (const struct rms_norm *)p;
    const struct xm_operand *x = &operands[XM_RMS_NORM_X], *y = &operands[XM_RMS_NORM_Y];
    XM_TRY(xm_operand_check(x, "x", s->desc.src, err));
    XM_TRY(xm_operand_check(y, "y", s->desc.dst, err));
    uint64_t n = x->rank ? (uint64_t)x->dim[x->rank - 1] : 1;
    if (n > INT32_MAX || xm_operand_elements(x) != xm_operand_elements(y))
        return xm_fail(err, XM_INVALID, "x and y differ in size, or a row is too long");
    if (s->desc.gamma && xm_buffer_bytes(s->desc.gamma) < n * sizeof(float))
        return xm_fail(err, XM_INVALID, "gamma has fewer elements than a row of x: %llu",
                       (unsigned long long)n);
    uint64_t rows = n ? xm_operand_elements(x) / n : 0;
    struct xm_args args = {.n = 0};
    xm_put_buffer(&args, "x", x->buffer);
    xm_put_buffer(&args, "gamma", s->desc.gamma);
    xm_put_buffer(&args, "y", y->buffer);
    xm_put_ulong(&args, "rows", rows);
    xm_put_uint(&args, "n", n);
    xm_put_float(&args, "epsilon", s->desc.epsilon);
    xm_put_buffer(
        &args, "prepared",
        xm_prepared_target(&s->desc.prepared, &operands[XM_RMS_NORM_PREPARED], n, rows));
    return xm_stage_go(&s->base.stage, NULL, rows, &args, run, err);
}

static void
destroy(struct xm_primitive *p)
{
    xm_buffer_unref(((struct rms_norm *)p)->desc.gamma);
    xm_primitive_free(p);
}

static const struct xm_primitive_ops ops = {"rms_norm", NULL, run, xm_staged_describe,
                                            destroy};

const char *
xm_rms_norm_supports(const struct xm_rms_norm_desc *desc)
{
    bool src = desc->src == XM_F16 || desc->src == XM_F32;
    bool dst = desc->dst == XM_F16 || desc->dst == XM_F32;
    return src && dst ? NULL : "rows are neither f16 nor f32";
}

enum xm_status
xm_rms_norm_create(struct xm_engine *engine, const struct xm_rms_norm_desc *desc,
                   struct xm_primitive **out, struct xm_error *err)
{
    char defines[XM_STAGE_DEFINES];
    const char *why = xm_rms_norm_supports(desc);
    if (why)
        return xm_fail(err, XM_UNSUPPORTED, "rms_norm: %s", why);
    struct rms_norm *s = xm_primitive_new(sizeof(*s), &ops, engine, err);
    if (!s)
        return XM_NO_MEMORY;
    s->desc = *desc;
    if (desc->gamma)
        xm_buffer_ref(desc->gamma);
    size_t used = xm_defines_print(
        defines, sizeof(defines), "-DSRC=%s -DDST=%s -DHAS_GAMMA=%d",
        xm_element_text(desc->src), xm_element_text(desc->dst), desc->gamma != NULL);
    xm_form_defines(&desc->prepared, "FORM", defines + used, sizeof(defines) - used);
    return xm_staged_build(&s->base, &xm_rms_norm_table, defines, out, err);
}

bool
xm_rms_norm_emits(const struct xm_primitive *norm)
{
    const struct rms_norm *s = (const struct rms_norm *)norm;
    return xm_rows_are_prepared(&s->desc.prepared) &&
           xm_stage_emits(&s->base.stage, NULL);
}
