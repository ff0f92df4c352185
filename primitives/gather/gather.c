/* SPDX-License-Identifier: Apache-2.0
 *
 * gather along one axis: x is seen as [outer, n, inner].
 */
#include "primitives/gather/gather.h"

#include "primitives/stage.h"
#include "primitives/tables.h"

/* clang-format off */
static const struct xm_variant rows[] = {
    {"gather_ref", XM_FAMILY_ANY, 0, NULL, {XM_ITEM}},
};
/* clang-format on */
const struct xm_variant_table xm_gather_table = XM_TABLE("gather", rows);

static enum xm_status
run(const struct xm_primitive *p, const struct xm_operand *operands,
    const struct xm_run *run, struct xm_error *err)
{
    const struct xm_staged *s = (const struct xm_staged *)p;
    const struct xm_gather_desc *desc = s->desc;
    const struct xm_operand *x = &operands[XM_GATHER_X], *ids = &operands[XM_GATHER_IDS];
    const struct xm_operand *y = &operands[XM_GATHER_Y];
    XM_TRY(xm_operand_check(x, "x", desc->element, err));
    XM_TRY(xm_operand_check(ids, "ids", desc->ids, err));
    XM_TRY(xm_operand_check(y, "y", desc->element, err));
    if (desc->axis >= x->rank)
        return xm_fail(err, XM_INVALID, "axis %u is outside x, which has rank %u",
                       desc->axis, x->rank);
    uint64_t n = (uint64_t)x->dim[desc->axis], n_ids = xm_operand_elements(ids);
    uint64_t outer = 1, inner = 1;
    for (uint32_t d = 0; d < x->rank; d++) {
        if (d < desc->axis)
            outer *= (uint64_t)x->dim[d];
        else if (d > desc->axis)
            inner *= (uint64_t)x->dim[d];
    }
    uint64_t elements = outer * n_ids * inner;
    XM_TRY(xm_operand_check_elements(y, "y", elements, err));
    struct xm_args args = {.n = 0};
    xm_put_buffer(&args, "x", x->buffer);
    xm_put_buffer(&args, "ids", ids->buffer);
    xm_put_buffer(&args, "y", y->buffer);
    xm_put_ulong(&args, "n", n);
    xm_put_ulong(&args, "n_ids", n_ids);
    xm_put_ulong(&args, "inner", inner);
    return xm_stage_go(&s->stage, NULL, elements, &args, run, err);
}

static const struct xm_staged_kind kind = {
    {"gather", NULL, run, xm_staged_describe, xm_primitive_free, XM_ROLES(xm_roles_2_1)},
    &xm_gather_table,
    sizeof(struct xm_gather_desc)};

enum xm_status
xm_gather_create(struct xm_engine *engine, const struct xm_gather_desc *desc,
                 struct xm_primitive **out, struct xm_error *err)
{
    return xm_staged_create(&kind, engine, desc, out, err, "-DBITS=%u -DIDS=%s",
                            xm_element_bits(desc->element), xm_element_text(desc->ids));
}
