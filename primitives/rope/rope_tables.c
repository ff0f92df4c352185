/* SPDX-License-Identifier: Apache-2.0
 *
 * rope_tables: one launch over all elements of both tables.
 */
#include "primitives/rope/rope.h"
#include "primitives/stage.h"
#include "primitives/tables.h"
#include "runtime/kernel_defines.h"

/* clang-format off */
static const struct xm_variant variants[] = {
    {"rope_tables_ref", XM_FAMILY_ANY, 0, NULL, {XM_ITEM}},
};
/* clang-format on */
const struct xm_variant_table xm_rope_tables_table = {"rope_tables", variants,
                                                      XM_ARRAY_LEN(variants)};

struct rope_tables {
    struct xm_staged base;
    struct xm_rope_tables_desc desc;
};

static uint64_t
columns_of(const struct xm_rope_tables_desc *d)
{
    return d->twice ? 2 * (uint64_t)d->r : d->r;
}

static enum xm_status
check_table(const struct rope_tables *s, const struct xm_operand *o, const char *name,
            uint64_t tokens, struct xm_error *err)
{
    XM_TRY(xm_operand_check(o, name, XM_F32, err));
    if (o->rank == 0 || (uint64_t)o->dim[o->rank - 1] != columns_of(&s->desc) ||
        xm_operand_rows(o) != tokens)
        return xm_fail(err, XM_INVALID, "table '%s' must be %llu rows of %llu elements",
                       name, (unsigned long long)tokens,
                       (unsigned long long)columns_of(&s->desc));
    return XM_OK;
}

static enum xm_status
run(const struct xm_primitive *p, const struct xm_operand *operands,
    const struct xm_run *run, struct xm_error *err)
{
    const struct rope_tables *s = (const struct rope_tables *)p;
    const struct xm_operand *positions = &operands[XM_ROPE_TABLES_POSITIONS];
    const struct xm_operand *cos = &operands[XM_ROPE_TABLES_COS];
    const struct xm_operand *sin = &operands[XM_ROPE_TABLES_SIN];
    uint64_t tokens = xm_operand_elements(positions);
    struct xm_args args = {.n = 0};
    XM_TRY(xm_operand_check(positions, "positions", s->desc.positions, err));
    XM_TRY(check_table(s, cos, "cos", tokens, err));
    XM_TRY(check_table(s, sin, "sin", tokens, err));
    xm_put_buffer(&args, "positions", positions->buffer);
    xm_put_buffer(&args, "frequencies", s->desc.frequencies);
    xm_put_buffer(&args, "cos_table", cos->buffer);
    xm_put_buffer(&args, "sin_table", sin->buffer);
    xm_put_uint(&args, "r", s->desc.r);
    xm_put_uint(&args, "columns", columns_of(&s->desc));
    xm_put_float(&args, "scale", s->desc.scale);
    return xm_stage_go(&s->base.stage, NULL, tokens * columns_of(&s->desc), &args, run,
                       err);
}

static void
destroy(struct xm_primitive *p)
{
    xm_buffer_unref(((struct rope_tables *)p)->desc.frequencies);
    xm_primitive_free(p);
}

static const struct xm_primitive_ops ops = {"rope_tables", NULL, run, xm_staged_describe,
                                            destroy};

const char *
xm_rope_tables_supports(const struct xm_rope_tables_desc *desc)
{
    if (desc->r == 0)
        return "there are no frequencies";
    return desc->positions == XM_I64 || desc->positions == XM_I32
               ? NULL
               : "positions are neither i64 nor i32";
}

enum xm_status
xm_rope_tables_create(struct xm_engine *engine, const struct xm_rope_tables_desc *desc,
                      struct xm_primitive **out, struct xm_error *err)
{
    char defines[XM_STAGE_DEFINES];
    const char *why = xm_rope_tables_supports(desc);
    if (why)
        return xm_fail(err, XM_UNSUPPORTED, "rope_tables: %s", why);
    struct rope_tables *s = xm_primitive_new(sizeof(*s), &ops, engine, err);
    if (!s)
        return XM_NO_MEMORY;
    s->desc = *desc;
    xm_buffer_ref(desc->frequencies);
    xm_defines_print(defines, sizeof(defines), "-DPOSITION=%s",
                     xm_element_text(desc->positions));
    return xm_staged_build(&s->base, &xm_rope_tables_table, defines, out, err);
}
