/* SPDX-License-Identifier: Apache-2.0
 *
 * rope_tables: one launch over all elements of both tables.
 */
#include "primitives/rope/rope.h"
#include "primitives/stage.h"
#include "primitives/tables.h"

/* clang-format off */
static const struct xm_variant rows[] = {
    {"rope_tables_ref", XM_FAMILY_ANY, 0, NULL, {XM_ITEM}},
};
/* clang-format on */
const struct xm_variant_table xm_rope_tables_table = XM_TABLE("rope_tables", rows);

static enum xm_status
run(const struct xm_primitive *p, const struct xm_operand *operands,
    const struct xm_run *run, struct xm_error *err)
{
    const struct xm_staged *s = (const struct xm_staged *)p;
    const struct xm_rope_tables_desc *d = s->desc;
    const struct xm_operand *positions = &operands[XM_ROPE_TABLES_POSITIONS];
    const struct xm_operand *cos = &operands[XM_ROPE_TABLES_COS];
    const struct xm_operand *sin = &operands[XM_ROPE_TABLES_SIN];
    const uint64_t tokens = xm_operand_elements(positions);
    const uint64_t columns = d->twice ? 2 * (uint64_t)d->r : d->r;
    struct xm_args args = {.n = 0};
    XM_TRY(xm_operand_check(positions, "positions", d->positions, err));
    XM_TRY(xm_operand_check_rows(cos, "cos", XM_F32, tokens, columns, err));
    XM_TRY(xm_operand_check_rows(sin, "sin", XM_F32, tokens, columns, err));
    xm_put_buffer(&args, "positions", positions->buffer);
    xm_put_buffer(&args, "frequencies", d->frequencies);
    xm_put_buffer(&args, "cos_table", cos->buffer);
    xm_put_buffer(&args, "sin_table", sin->buffer);
    xm_put_uint(&args, "r", d->r);
    xm_put_uint(&args, "columns", columns);
    xm_put_float(&args, "scale", d->scale);
    return xm_stage_go(&s->stage, NULL, tokens * columns, &args, run, err);
}

static void
destroy(struct xm_primitive *p)
{
    const struct xm_rope_tables_desc *d = ((struct xm_staged *)p)->desc;
    xm_buffer_unref(d->frequencies);
    xm_primitive_free(p);
}

static const struct xm_staged_kind kind = {
    {"rope_tables", NULL, run, xm_staged_describe, destroy, XM_ROLES(xm_roles_1_2)},
    &xm_rope_tables_table,
    sizeof(struct xm_rope_tables_desc)};

const char *
xm_rope_tables_supports(const struct xm_rope_tables_desc *desc)
{
    if (desc->r == 0)
        return "there are no rotary frequencies";
    return desc->positions == XM_I64 || desc->positions == XM_I32
               ? NULL
               : "positions are neither i64 nor i32";
}

enum xm_status
xm_rope_tables_create(struct xm_engine *engine, const struct xm_rope_tables_desc *desc,
                      struct xm_primitive **out, struct xm_error *err)
{
    const char *why = xm_rope_tables_supports(desc);
    if (why)
        return xm_fail(err, XM_UNSUPPORTED, "rope_tables: %s", why);
    XM_TRY(xm_staged_create(&kind, engine, desc, out, err, "-DPOSITION=%s",
                            xm_element_text(desc->positions)));
    xm_buffer_ref(desc->frequencies);
    return XM_OK;
}
