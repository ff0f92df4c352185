/* SPDX-License-Identifier: Apache-2.0
 *
 * gather along one axis: x is seen as [outer, n, inner].
 */
#include "primitives/gather/gather.h"

#include "primitives/stage.h"
#include "primitives/tables.h"
#include "runtime/kernel_defines.h"

/* clang-format off */
static const struct xm_variant gather_variants[] = {
    {"gather_ref", XM_FAMILY_ANY, 0, NULL, {XM_ITEM}},
};
/* clang-format on */
const struct xm_variant_table xm_gather_table = {"gather", gather_variants,
                                                 XM_ARRAY_LEN(gather_variants)};

struct gather {
    struct xm_staged base;
    struct xm_gather_desc desc;
};

static enum xm_status
run(const struct xm_primitive *p, const struct xm_operand *operands,
    const struct xm_run *run, struct xm_error *err)
{
    const struct gather *s = (const struct gather *)p;
    const struct xm_operand *x = &operands[XM_GATHER_X], *ids = &operands[XM_GATHER_IDS];
    const struct xm_operand *y = &operands[XM_GATHER_Y];
    XM_TRY(xm_operand_check(x, "x", s->desc.element, err));
    XM_TRY(xm_operand_check(ids, "ids", s->desc.ids, err));
    XM_TRY(xm_operand_check(y, "y", s->desc.element, err));
    if (s->desc.axis >= x->rank)
        return xm_fail(err, XM_INVALID, "axis %u of x, which has rank %u", s->desc.axis,
                       x->rank);
    uint64_t n = (uint64_t)x->dim[s->desc.axis], n_ids = xm_operand_elements(ids);
    uint64_t outer = 1, inner = 1;
    for (uint32_t d = 0; d < x->rank; d++) {
        if (d < s->desc.axis)
            outer *= (uint64_t)x->dim[d];
        else if (d > s->desc.axis)
            inner *= (uint64_t)x->dim[d];
    }
    uint64_t elements = xm_operand_elements(y);
    if (elements != outer * n_ids * inner)
        return xm_fail(err, XM_INVALID, "y has %llu elements, x and ids give %llu",
                       (unsigned long long)elements,
                       (unsigned long long)(outer * n_ids * inner));
    struct xm_args args = {.n = 0};
    xm_put_buffer(&args, "x", x->buffer);
    xm_put_buffer(&args, "ids", ids->buffer);
    xm_put_buffer(&args, "y", y->buffer);
    xm_put_ulong(&args, "n", n);
    xm_put_ulong(&args, "n_ids", n_ids);
    xm_put_ulong(&args, "inner", inner);
    return xm_stage_go(&s->base.stage, NULL, elements, &args, run, err);
}

static const struct xm_primitive_ops ops = {"gather", NULL, run, xm_staged_describe,
                                            xm_primitive_free};

enum xm_status
xm_gather_create(struct xm_engine *engine, const struct xm_gather_desc *desc,
                 struct xm_primitive **out, struct xm_error *err)
{
    char defines[XM_STAGE_DEFINES];
    struct gather *s = xm_primitive_new(sizeof(*s), &ops, engine, err);
    if (!s)
        return XM_NO_MEMORY;
    s->desc = *desc;
    xm_defines_print(defines, sizeof(defines), "-DBITS=%u -DIDS=%s",
                     xm_element_bits(desc->element), xm_element_text(desc->ids));
    return xm_staged_build(&s->base, &xm_gather_table, defines, out, err);
}
