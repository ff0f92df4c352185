/* SPDX-License-Identifier: Apache-2.0
 *
 * moe with stored weights -> moe_compressed, whose attributes describe the format for kernels.
 *
 *     group_size  elements of a row that share a scale; 0 if gate, up and down differ, or
 *                 are stored as floats
 *     has_zp      whether any of these weights has zero points
 *
 * The weights do not change; lowering puts scales in the kernels' order when it makes the device's
 * copy.
 */
#include "transformations/passes/moe_block.h"
#include "transformations/pipeline.h"

enum { MOE };

static const struct xm_weight *
weight_of(const struct xm_value *v)
{
    return v->node->op == XM_OP_WEIGHT ? &v->node->attr.weight : NULL;
}

static bool
are_stored(struct xm_match *m)
{
    static const uint32_t weights[] = {XM_MOE_W_GATE, XM_MOE_W_UP, XM_MOE_W_DOWN};
    for (size_t i = 0; i < XM_ARRAY_LEN(weights); i++) {
        const struct xm_value *v = xm_in(m->root, weights[i]);
        m->why = "a weight of the experts is not stored in the model";
        if (!xm_is_none(v) && !weight_of(v))
            return false;
    }
    return true;
}

static void
set_format(const struct xm_match *m, union xm_attr *attr)
{
    const struct xm_weight *gate = weight_of(xm_in(m->root, XM_MOE_W_GATE));
    const struct xm_weight *up = weight_of(xm_in(m->root, XM_MOE_W_UP));
    const struct xm_weight *down = weight_of(xm_in(m->root, XM_MOE_W_DOWN));
    bool same = gate->group == down->group && (!up || up->group == gate->group);
    attr->moe.group = same ? (int64_t)gate->group : 0;
    attr->moe.has_zp =
        gate->zero_point.p || down->zero_point.p || (up && up->zero_point.p);
}

/* clang-format off */
const struct xm_rule xm_rules_convert_moe_to_moe_compressed[] = {
    { "moe", ANY(MOE, 0, MOE), ANY(MOE, 0, MOE_COMPRESSED), .attr = set_format, .condition = are_stored },
    { .name = NULL },
};
/* clang-format on */
