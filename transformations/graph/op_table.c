/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of ops.def. */
#include <string.h>

#include "transformations/graph/graph.h"

enum {
    COMMUTES = XM_OPF_COMMUTES,
    ELTWISE = XM_OPF_ELTWISE,
    SHAPE_ONLY = XM_OPF_SHAPE_ONLY,
    STATE = XM_OPF_STATE,
    SOURCE = XM_OPF_SOURCE,
    NAMED = XM_OPF_NAMED,
    FUSED = XM_OPF_FUSED,
    PRODUCT = XM_OPF_PRODUCT,
    CONVERTS = XM_OPF_CONVERTS,
    EXCHANGES = XM_OPF_EXCHANGES
};

static const struct xm_op_info ops[XM_OP_COUNT] = {
#define OP(id, text, ir, opsets, min, max, out, flags, algebra, shape, eval, classes)    \
    [XM_OP_##id] = {text, ir, opsets, min, max, out, flags},
#include "transformations/graph/ops.def"
};

const struct xm_op_info *
xm_op_info(enum xm_op op)
{
    return &ops[op];
}

enum xm_op
xm_op_by_text(const char *text)
{
    int op = 0;
    while (op < XM_OP_COUNT && strcmp(ops[op].text, text) != 0)
        op++;
    return (enum xm_op)op;
}

enum xm_op
xm_op_by_ir_type(const char *type)
{
    int op = 0;
    while (op < XM_OP_COUNT && !(ops[op].ir_type && strcmp(ops[op].ir_type, type) == 0))
        op++;
    return (enum xm_op)op;
}
