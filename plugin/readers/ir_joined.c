/* SPDX-License-Identifier: Apache-2.0
 *
 * Replaces inputs of a language model whose embeddings are nets of their own, as exporters write
 * models that also read pictures. For text alone, each input follows from the token ids and their
 * positions:
 *
 *     input_ids          the input of the embedding nets
 *     inputs_embeds      the result of the embedding net
 *     per_layer_inputs   the result of the embedding net for each layer
 *     position_ids       [n,B,T], positions on n axes: all equal the text's positions [B,T]
 *     token_type_ids     [B,T], 0: text
 *
 * Not supported: pictures, and inputs that only pictures need.
 */
#include <string.h>

#include "plugin/readers/ir_records.h"
#include "transformations/graph/symbols.h"

enum { DEFAULT_AXES = 3 /* time, height, width */, MOST_AXES = 8 };

static enum xm_status
failed(const struct xm_builder *b, struct xm_error *err)
{
    const struct xm_error *cause = &b->graph->err;
    return cause->status == XM_OK ? xm_fail(err, XM_NO_MEMORY, "out of memory")
                                  : xm_fail(err, cause->status, "%s", cause->text);
}

static enum xm_element
element_of(const struct xm_ir_layer *l)
{
    const char *text = xm_ir_attr(l, "element_type");
    return text ? xm_element_parse(text) : XM_ELEMENT_COUNT;
}

/* Adds an input of positions [B,T] and repeats it for each axis. */
static enum xm_status
positions(struct xm_builder *b, const struct xm_ir_layer *l, struct xm_value **out,
          struct xm_error *err)
{
    const struct xm_ir_port *port = l->out.first;
    const int64_t n = port->dim[0] >= 0 ? port->dim[0] : DEFAULT_AXES, zero = 0;
    struct xm_dim_pool *dims = &b->graph->dims;
    const struct xm_type type = {
        element_of(l),
        {2,
         {xm_dim_symbol(dims, XM_SYMBOL_BATCH), xm_dim_symbol(dims, XM_SYMBOL_TOKENS)}}};
    const union xm_attr axis = {.axis = {0}};
    struct xm_value *axes[MOST_AXES];
    if (type.element != XM_I64 && type.element != XM_I32)
        return xm_fail(err, XM_INVALID, "expected positions of type i64 or i32");
    if (n < 1 || n > MOST_AXES)
        return xm_fail(err, XM_UNSUPPORTED, "expected 1 to %d axes of positions",
                       MOST_AXES);
    struct xm_value *one = xm_op2(b, XM_OP_UNSQUEEZE, xm_parameter(b, l->name, &type),
                                  xm_const_ints(b, XM_I64, &zero, 1));
    for (int64_t i = 0; i < n; i++)
        axes[i] = one;
    *out = one ? xm_op_build(b, XM_OP_CONCAT, &axis, axes, (uint32_t)n) : NULL;
    return *out ? XM_OK : failed(b, err);
}

static enum xm_status
zeros(const struct xm_ir_joint *j, struct xm_builder *b, const struct xm_ir_layer *l,
      struct xm_value **out, struct xm_error *err)
{
    const int64_t zero = 0;
    struct xm_value *none = xm_op2(b, XM_OP_MULTIPLY, j->ids,
                                   xm_const_ints(b, j->ids->type.element, &zero, -1));
    *out = none ? xm_convert(b, none, element_of(l)) : NULL;
    return *out ? XM_OK : failed(b, err);
}

enum xm_status
xm_ir_joint_input(const struct xm_ir_joint *j, struct xm_builder *b,
                  const struct xm_ir_layer *l, struct xm_value **out,
                  struct xm_error *err)
{
    *out = NULL;
    if (l->out.n != 1)
        return XM_OK; /* the layer is refused later */
    if (j->is_embeddings || strcmp(l->name, "input_ids") == 0) {
        *out = j->ids;
    } else if (strcmp(l->name, "inputs_embeds") == 0) {
        *out = j->embeddings;
    } else if (strcmp(l->name, "per_layer_inputs") == 0) {
        *out = j->per_layer;
        if (!j->per_layer)
            return xm_fail(err, XM_NOT_FOUND,
                           "the input '%s' needs openvino_text_embeddings_per_layer_model"
                           ".xml beside the model",
                           l->name);
    } else if (strcmp(l->name, "position_ids") == 0 && l->out.first->rank == 3) {
        return positions(b, l, out, err);
    } else if (strcmp(l->name, "token_type_ids") == 0 && l->out.first->rank == 2) {
        return zeros(j, b, l, out, err);
    }
    return XM_OK;
}
