/* SPDX-License-Identifier: Apache-2.0
 *
 * rms_norm: rows in one launch; any row length.
 */
#include "primitives/norm/norm.h"

#include "primitives/stage.h"
#include "primitives/tables.h"

/* clang-format off */
static const struct xm_variant variants[] = {
    {"rms_norm_vec", XM_FAMILY_VEC, 0, NULL, {XM_SPAN}, .emits = true},
    {"rms_norm_sg",  XM_FAMILY_SG,  0, NULL, {XM_GROUP, XM_SUB_GROUP_ITEMS}},
    {"rms_norm_gen", XM_FAMILY_GEN, 0, NULL, {XM_GROUP, XM_GROUP_ITEMS}},
    {"rms_norm_ref", XM_FAMILY_ANY, 0, NULL, {XM_ITEM}},
};
/* clang-format on */
const struct xm_variant_table xm_rms_norm_table = XM_TABLE("rms_norm", variants);

static enum xm_status
run(const struct xm_primitive *p, const struct xm_operand *operands,
    const struct xm_run *run, struct xm_error *err)
{
    const struct xm_staged *s = (const struct xm_staged *)p;
    const struct xm_rms_norm_desc *d = s->desc;
    const struct xm_operand *x = &operands[XM_RMS_NORM_X], *y = &operands[XM_RMS_NORM_Y];
    XM_TRY(xm_operand_check(x, "x", d->src, err));
    XM_TRY(xm_operand_check(y, "y", d->dst, err));
    uint64_t n = x->rank ? (uint64_t)x->dim[x->rank - 1] : 1;
    if (n > INT32_MAX || xm_operand_elements(x) != xm_operand_elements(y))
        return xm_fail(err, XM_INVALID, "x and y differ in size, or a row is too long");
    if (d->gamma && xm_buffer_bytes(d->gamma) < n * sizeof(float))
        return xm_fail(err, XM_INVALID, "gamma has fewer elements than a row of x: %llu",
                       (unsigned long long)n);
    uint64_t rows = n ? xm_operand_elements(x) / n : 0;
    struct xm_args args = {.n = 0};
    xm_put_buffer(&args, "x", x->buffer);
    xm_put_buffer(&args, "gamma", d->gamma);
    xm_put_buffer(&args, "y", y->buffer);
    xm_put_ulong(&args, "rows", rows);
    xm_put_uint(&args, "n", n);
    xm_put_float(&args, "epsilon", d->epsilon);
    xm_put_buffer(
        &args, "prepared",
        xm_prepared_target(&d->prepared, &operands[XM_RMS_NORM_PREPARED], n, rows));
    return xm_stage_go(&s->stage, NULL, rows, &args, run, err);
}

static void
destroy(struct xm_primitive *p)
{
    const struct xm_rms_norm_desc *d = ((struct xm_staged *)p)->desc;
    xm_buffer_unref(d->gamma);
    xm_primitive_free(p);
}

static const uint8_t roles[] = {[XM_RMS_NORM_X] = XM_ROLE_IN,
                                [XM_RMS_NORM_PREPARED] = XM_ROLE_OUT | XM_ROLE_FORM,
                                [XM_RMS_NORM_Y] = XM_ROLE_OUT};
static const struct xm_staged_kind kind = {
    {"rms_norm", NULL, run, xm_staged_describe, destroy, XM_ROLES(roles)},
    &xm_rms_norm_table,
    sizeof(struct xm_rms_norm_desc)};

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
    char form[XM_STAGE_DEFINES];
    const char *why = xm_rms_norm_supports(desc);
    if (why)
        return xm_fail(err, XM_UNSUPPORTED, "rms_norm: %s", why);
    xm_form_defines(&desc->prepared, "FORM", form, sizeof(form));
    XM_TRY(xm_staged_create(&kind, engine, desc, out, err,
                            "-DSRC=%s -DDST=%s -DHAS_GAMMA=%d%s",
                            xm_element_text(desc->src), xm_element_text(desc->dst),
                            desc->gamma != NULL, form));
    if (desc->gamma)
        xm_buffer_ref(desc->gamma);
    return XM_OK;
}

bool
xm_rms_norm_emits(const struct xm_primitive *norm)
{
    const struct xm_staged *s = (const struct xm_staged *)norm;
    const struct xm_rms_norm_desc *d = s->desc;
    return xm_rows_are_prepared(&d->prepared) && xm_stage_emits(&s->stage, NULL);
}
