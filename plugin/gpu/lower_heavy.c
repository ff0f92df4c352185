/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowering of the operations that carry a language model: linear layers, embeddings,
 * norms, rope, attention, mixture of experts.
 */
#include "plugin/gpu/lower.h"

#include <string.h>

#include "primitives/eltwise/eltwise.h"
#include "primitives/gather/gather.h"
#include "primitives/linear/linear.h"
#include "primitives/moe/moe.h"
#include "primitives/norm/norm.h"
#include "primitives/norm/row_chain.h"
#include "primitives/rope/rope.h"

static enum xm_status
finish(struct xm_lower *l, struct xm_node *n, struct xm_primitive *primitive,
       struct xm_step_operand *operands, const struct xm_step_cost *cost)
{
    struct xm_step *step = NULL;
    XM_TRY(xm_lower_step(l, n, XM_STEP_PRIMITIVE, primitive, operands, &step));
    if (cost)
        step->cost = *cost;
    return XM_OK;
}

/* `times` experts of a weight. */
static void
add_cost(struct xm_step_cost *cost, const struct xm_weight *w, uint64_t times)
{
    const uint64_t bytes = xm_weight_bytes(w) / w->experts * times;
    cost->bytes += bytes;
    cost->expert_bytes += w->experts > 1 ? bytes : 0;
    cost->all_expert_bytes += w->experts > 1 ? xm_weight_bytes(w) : 0;
    cost->multiply_adds += w->rows * w->cols * times;
}

static bool
is_float_operand(const struct xm_lower *l, const struct xm_step_operand *o)
{
    enum xm_element e = xm_lower_element_of(l, o);
    return e == XM_F16 || e == XM_F32;
}

/* The segments and results of a matmul or linear; x is operand 0 of both. */
static enum xm_status
lower_segments(struct xm_lower *l, struct xm_node *n, struct xm_linear_desc *desc,
               struct xm_step_operand *operands)
{
    struct xm_step_cost cost = {.result = XM_LINEAR_Y, .picked = 1 + XM_LINEAR_ADDEND};
    XM_TRY(xm_lower_input(l, n, 0, &operands[XM_LINEAR_X]));
    desc->src = xm_lower_element_of(l, &operands[XM_LINEAR_X]);
    desc->dst = xm_lower_element(&n->out[0]);
    desc->factor = xm_config_factor_columns(&l->p->config);
    for (uint32_t i = 0; i < desc->n; i++) {
        const struct xm_weight *w = &desc->segment[i].weight->host;
        if (xm_linear_supports(xm_engine_info(l->p->engine), w, desc->src, desc->dst))
            return XM_UNSUPPORTED;
        add_cost(&cost, w, 1);
    }
    for (uint32_t i = 0; i < n->n_out; i++)
        XM_TRY(xm_lower_result(l, n, i, desc->dst, &operands[XM_LINEAR_Y + i]));
    operands[XM_LINEAR_PREPARED].value =
        xm_lower_prepared_of(l, operands[XM_LINEAR_X].value,
                             desc->segment[0].weight->host.cols, &desc->prepared);
    struct xm_primitive *primitive = NULL;
    XM_TRY(xm_linear_create(l->p->engine, desc, &primitive, l->err));
    return finish(l, n, primitive, operands, &cost);
}

static enum xm_status
lower_weight_matmul(struct xm_lower *l, struct xm_node *n)
{
    struct xm_linear_desc desc = {.chunk = l->p->config.ubatch, .n = 1};
    struct xm_step_operand operands[XM_LINEAR_N_OPERANDS];
    xm_lower_absent(operands, XM_LINEAR_N_OPERANDS);
    XM_TRY(xm_lower_weight(l, xm_in(n, 1), &desc.segment[0].weight));
    return lower_segments(l, n, &desc, operands);
}

/* How many slices a factor of n has: 1 where it has the result's shape. */
static int64_t
slices_of(const struct xm_node *n)
{
    const struct xm_shape *s = &xm_in(n, XM_LINEAR_FACTOR)->type.shape;
    return s->rank == n->out[0].type.shape.rank + 1 ? s->dim[s->rank - 2].n : 1;
}

static enum xm_status
lower_linear(struct xm_lower *l, struct xm_node *n)
{
    enum xm_activation activation = (enum xm_activation)n->attr.linear.activation;
    struct xm_linear_desc desc = {.is_glu = n->attr.linear.glu,
                                  .activation = activation,
                                  .slices = (uint32_t)slices_of(n),
                                  .slice = (uint32_t)n->attr.linear.slice,
                                  .chunk = l->p->config.ubatch,
                                  .n = (n->n_in - XM_LINEAR_W) / XM_LINEAR_SEGMENT};
    struct xm_step_operand operands[XM_LINEAR_N_OPERANDS];
    xm_lower_absent(operands, XM_LINEAR_N_OPERANDS);
    for (uint32_t i = 0; i < desc.n; i++) {
        uint32_t w = XM_LINEAR_W + i * XM_LINEAR_SEGMENT;
        XM_TRY(xm_lower_weight(l, xm_in(n, w), &desc.segment[i].weight));
        XM_TRY(xm_lower_f32_buffer(l, xm_in(n, w + 1), &desc.segment[i].bias));
    }
    desc.has_addend = !desc.is_glu && !xm_is_none(xm_in(n, XM_LINEAR_ADDEND));
    XM_TRY(xm_lower_input_as(l, n, XM_LINEAR_ADDEND, xm_lower_element(&n->out[0]),
                             &operands[XM_LINEAR_ADDEND])); /* or factor */
    return lower_segments(l, n, &desc, operands);
}

static enum xm_status
lower_matmul(struct xm_lower *l, struct xm_node *n)
{
    const struct xm_value *w = xm_in(n, 1);
    if (w->node->op == XM_OP_WEIGHT)
        return n->attr.matmul.transpose_b && !n->attr.matmul.transpose_a &&
                       w->node->attr.weight.rank == 2
                   ? lower_weight_matmul(l, n)
                   : XM_UNSUPPORTED;
    struct xm_step_operand operands[XM_MATMUL_N_OPERANDS];
    if (xm_in(n, 0)->type.shape.rank < 2 || w->type.shape.rank < 2)
        return XM_UNSUPPORTED;
    XM_TRY(xm_lower_input(l, n, 0, &operands[XM_MATMUL_A]));
    XM_TRY(xm_lower_input(l, n, 1, &operands[XM_MATMUL_B]));
    if (!is_float_operand(l, &operands[XM_MATMUL_A]) ||
        !is_float_operand(l, &operands[XM_MATMUL_B]))
        return XM_UNSUPPORTED;
    struct xm_matmul_desc desc = {.transpose_a = n->attr.matmul.transpose_a,
                                  .transpose_b = n->attr.matmul.transpose_b,
                                  .a = xm_lower_element_of(l, &operands[XM_MATMUL_A]),
                                  .b = xm_lower_element_of(l, &operands[XM_MATMUL_B]),
                                  .c = xm_lower_element(&n->out[0])};
    XM_TRY(xm_lower_result(l, n, 0, desc.c, &operands[XM_MATMUL_C]));
    struct xm_primitive *primitive = NULL;
    XM_TRY(xm_matmul_create(l->p->engine, &desc, &primitive, l->err));
    const struct xm_step_cost cost = {.result = XM_MATMUL_C,
                                      .inner = desc.transpose_a ? 2 : 1};
    return finish(l, n, primitive, operands, &cost);
}

/* The axis operand of a gather, normalised; -1 when it is not a constant. */
static int64_t
gather_axis(const struct xm_node *n)
{
    int64_t axis;
    if (xm_value_const_ints(xm_in(n, 2), &axis, 1) != 1)
        return -1;
    return axis < 0 ? axis + (int64_t)xm_in(n, 0)->type.shape.rank : axis;
}

static enum xm_status
lower_embedding(struct xm_lower *l, struct xm_node *n, const struct xm_step_operand *ids)
{
    struct xm_embedding_desc desc = {.ids = xm_lower_element_of(l, ids)};
    XM_TRY(xm_lower_weight(l, xm_in(n, 0), &desc.weight));
    if (desc.weight->host.rank != 2)
        return XM_UNSUPPORTED;
    desc.dst = xm_lower_element(&n->out[0]);
    struct xm_primitive *primitive = NULL;
    XM_TRY(xm_embedding_create(l->p->engine, &desc, &primitive, l->err));
    struct xm_step_operand operands[XM_EMBEDDING_N_OPERANDS] = {[XM_EMBEDDING_IDS] =
                                                                    *ids};
    XM_TRY(xm_lower_result(l, n, 0, desc.dst, &operands[XM_EMBEDDING_Y]));
    const struct xm_weight *table = &desc.weight->host;
    const struct xm_step_cost cost = {.result = XM_EMBEDDING_Y,
                                      .row_bytes = xm_weight_bytes(table) / table->rows};
    return finish(l, n, primitive, operands, &cost);
}

static enum xm_status
lower_gather(struct xm_lower *l, struct xm_node *n)
{
    int64_t axis = gather_axis(n);
    struct xm_step_operand operands[XM_GATHER_N_OPERANDS];
    XM_TRY(xm_lower_input(l, n, 1, &operands[XM_GATHER_IDS]));
    enum xm_element ids = xm_lower_element_of(l, &operands[XM_GATHER_IDS]);
    if (axis < 0 || n->attr.gather.batch_dims != 0 || (ids != XM_I32 && ids != XM_I64))
        return XM_UNSUPPORTED;
    if (xm_in(n, 0)->node->op == XM_OP_WEIGHT && axis == 0 &&
        xm_in(n, 0)->type.shape.rank == 2)
        return lower_embedding(l, n, &operands[XM_GATHER_IDS]);
    XM_TRY(xm_lower_like_result(l, n, 0, &operands[XM_GATHER_X]));
    struct xm_gather_desc desc = {.axis = (uint32_t)axis,
                                  .element =
                                      xm_lower_element_of(l, &operands[XM_GATHER_X]),
                                  .ids = ids};
    XM_TRY(xm_lower_result(l, n, 0, desc.element, &operands[XM_GATHER_Y]));
    struct xm_primitive *primitive = NULL;
    XM_TRY(xm_gather_create(l->p->engine, &desc, &primitive, l->err));
    const struct xm_step_cost cost = {.result = XM_GATHER_Y, .picked = 1 + XM_GATHER_X};
    return finish(l, n, primitive, operands, &cost);
}

/* Elements of a row of n's results; 0: that depends. */
static uint64_t
row_length(const struct xm_node *n)
{
    const struct xm_shape *s = &n->out[0].type.shape;
    return s->rank && xm_dim_is_const(s->dim[s->rank - 1])
               ? (uint64_t)s->dim[s->rank - 1].n
               : 0;
}

/* The value for what `primitive`, which is destroyed on failure, writes beside value `of`. */
static enum xm_status
emit(struct xm_lower *l, struct xm_primitive *primitive, const struct xm_step_operand *of,
     const struct xm_rows_form *form, uint64_t cols, struct xm_step_operand *out)
{
    enum xm_status status = xm_lower_prepared(l, of->value, form, cols, out);
    if (status != XM_OK)
        xm_primitive_destroy(primitive);
    return status;
}

static enum xm_status
lower_rms_norm(struct xm_lower *l, struct xm_node *n)
{
    struct xm_rms_norm_desc desc = {.epsilon = n->attr.rms_norm.epsilon};
    struct xm_step_operand operands[XM_RMS_NORM_N_OPERANDS];
    xm_lower_absent(operands, XM_RMS_NORM_N_OPERANDS);
    XM_TRY(xm_lower_f32_buffer(l, xm_in(n, 1), &desc.gamma));
    XM_TRY(xm_lower_input(l, n, 0, &operands[XM_RMS_NORM_X]));
    desc.src = xm_lower_element_of(l, &operands[XM_RMS_NORM_X]);
    desc.dst = xm_lower_element(&n->out[0]);
    XM_TRY(xm_lower_result(l, n, 0, desc.dst, &operands[XM_RMS_NORM_Y]));
    const uint64_t cols = row_length(n);
    struct xm_primitive *primitive = NULL;
    desc.prepared = xm_lower_form_wanted(l, &n->out[0], cols);
    XM_TRY(xm_rms_norm_create(l->p->engine, &desc, &primitive, l->err));
    if (xm_rms_norm_emits(primitive))
        XM_TRY(emit(l, primitive, &operands[XM_RMS_NORM_Y], &desc.prepared, cols,
                    &operands[XM_RMS_NORM_PREPARED]));
    return finish(l, n, primitive, operands, NULL);
}

/* What the steps read: rows on the device, constants in buffers of their own. */
static enum xm_status
row_chain_operands(struct xm_lower *l, struct xm_node *n, struct xm_row_chain_desc *desc,
                   struct xm_step_operand *operands)
{
    const struct xm_row_chain *chain = &desc->chain;
    for (uint32_t i = 0; i < chain->n_x; i++) {
        struct xm_step_operand *x = &operands[XM_ROW_CHAIN_X + i];
        XM_TRY(xm_lower_input(l, n, i, x));
        desc->x[i] = xm_lower_element_of(l, x);
        if (!is_float_operand(l, x))
            return XM_UNSUPPORTED;
    }
    for (uint32_t i = 0; i < chain->n_c; i++) {
        const struct xm_value *v = xm_in(n, chain->n_x + i);
        XM_TRY(xm_lower_f32_buffer(l, v, &desc->constant[i]));
        desc->is_number[i] = xm_dim_is(v->type.shape.dim[0], 1);
    }
    return XM_OK;
}

static enum xm_status
lower_row_chain(struct xm_lower *l, struct xm_node *n)
{
    const struct xm_shape *shape = &n->out[0].type.shape;
    struct xm_dim width = shape->dim[shape->rank - 1];
    struct xm_row_chain_desc desc = {.n = 0};
    struct xm_step_operand operands[XM_ROW_CHAIN_N_OPERANDS];
    XM_TRY(xm_row_chain_parse(n->attr.row_chain.steps, &desc.chain, l->err));
    if (!xm_dim_is_const(width) || xm_row_chain_supports(&desc.chain, width.n))
        return XM_UNSUPPORTED;
    desc.n = (uint32_t)width.n;
    xm_lower_absent(operands, XM_ROW_CHAIN_N_OPERANDS);
    XM_TRY(row_chain_operands(l, n, &desc, operands));
    for (uint32_t i = 0; i < desc.chain.n_y; i++) {
        desc.y[i] = xm_lower_element(&n->out[i]);
        XM_TRY(xm_lower_result(l, n, i, desc.y[i], &operands[XM_ROW_CHAIN_Y + i]));
        desc.prepared[i] = xm_lower_form_wanted(l, &n->out[i], desc.n);
    }
    struct xm_primitive *primitive = NULL;
    XM_TRY(xm_row_chain_create(l->p->engine, &desc, &primitive, l->err));
    for (uint32_t i = 0; i < desc.chain.n_y; i++) {
        if (xm_row_chain_emits(primitive, i))
            XM_TRY(emit(l, primitive, &operands[XM_ROW_CHAIN_Y + i], &desc.prepared[i],
                        desc.n, &operands[XM_ROW_CHAIN_PREPARED + i]));
    }
    return finish(l, n, primitive, operands, NULL);
}

static enum xm_status
lower_rope(struct xm_lower *l, struct xm_node *n)
{
    struct xm_step_operand operands[XM_ROPE_N_OPERANDS];
    XM_TRY(xm_lower_like_result(l, n, 0, &operands[XM_ROPE_X]));
    XM_TRY(xm_lower_input_as(l, n, 1, XM_F32, &operands[XM_ROPE_COS]));
    XM_TRY(xm_lower_input_as(l, n, 2, XM_F32, &operands[XM_ROPE_SIN]));
    struct xm_rope_desc desc = {.element = xm_lower_element_of(l, &operands[XM_ROPE_X])};
    XM_TRY(xm_lower_result(l, n, 0, desc.element, &operands[XM_ROPE_Y]));
    struct xm_primitive *primitive = NULL;
    XM_TRY(xm_rope_create(l->p->engine, &desc, &primitive, l->err));
    return finish(l, n, primitive, operands, NULL);
}

static enum xm_status
lower_rope_tables(struct xm_lower *l, struct xm_node *n)
{
    struct xm_step_operand operands[XM_ROPE_TABLES_N_OPERANDS];
    struct xm_rope_tables_desc desc = {.r = (uint32_t)xm_in(n, 1)->type.shape.dim[0].n,
                                       .scale = n->attr.rope_tables.scale,
                                       .twice = n->attr.rope_tables.twice};
    struct xm_primitive *primitive = NULL;
    XM_TRY(xm_lower_input(l, n, 0, &operands[XM_ROPE_TABLES_POSITIONS]));
    desc.positions = xm_lower_element_of(l, &operands[XM_ROPE_TABLES_POSITIONS]);
    if (xm_rope_tables_supports(&desc))
        return XM_UNSUPPORTED;
    XM_TRY(xm_lower_f32_buffer(l, xm_in(n, 1), &desc.frequencies));
    XM_TRY(xm_lower_result(l, n, 0, XM_F32, &operands[XM_ROPE_TABLES_COS]));
    XM_TRY(xm_lower_result(l, n, 1, XM_F32, &operands[XM_ROPE_TABLES_SIN]));
    XM_TRY(xm_rope_tables_create(l->p->engine, &desc, &primitive, l->err));
    return finish(l, n, primitive, operands, NULL);
}

static enum xm_status
lower_glu(struct xm_lower *l, struct xm_node *n)
{
    if (!xm_shape_eq(&xm_in(n, 0)->type.shape, &xm_in(n, 1)->type.shape))
        return XM_UNSUPPORTED;
    enum xm_element e = xm_lower_element(&n->out[0]);
    struct xm_glu_desc desc = {.activation = (enum xm_activation)n->attr.glu.activation,
                               .element = e};
    struct xm_step_operand operands[XM_GLU_N_OPERANDS];
    XM_TRY(xm_lower_input_as(l, n, 0, e, &operands[XM_GLU_GATE]));
    XM_TRY(xm_lower_input_as(l, n, 1, e, &operands[XM_GLU_UP]));
    XM_TRY(xm_lower_result(l, n, 0, e, &operands[XM_GLU_Y]));
    struct xm_primitive *primitive = NULL;
    XM_TRY(xm_glu_create(l->p->engine, &desc, &primitive, l->err));
    return finish(l, n, primitive, operands, NULL);
}

/* ---- attention --------------------------------------------------------------------- */

/* Layers that read one cache may have different windows. */
static void
see_window(struct xm_kv_layer *layer, uint64_t window)
{
    if (window == 0 || (layer->window && window > layer->window))
        layer->window = window;
}

static enum xm_status
find_layer(struct xm_lower *l, const struct xm_attention_attr *a,
           const struct xm_attention_desc *d, uint32_t *out)
{
    struct xm_program *p = l->p;
    for (uint32_t i = 0; i < p->n_kv; i++) {
        if (strcmp(p->kv[i].key_state, a->key_state) == 0) {
            *out = i;
            see_window(&p->kv[i], d->window);
            return XM_OK;
        }
    }
    struct xm_kv_page page;
    if (!xm_attention_page(d, &page))
        return xm_fail(l->err, XM_UNSUPPORTED, "a page of its cache has no size");
    struct xm_kv_layer *list = xm_realloc(p->kv, (p->n_kv + 1) * sizeof(*list));
    if (!list)
        return xm_no_memory(l->err, "the list of cached layers");
    p->kv = list;
    *out = p->n_kv;
    list[p->n_kv++] =
        (struct xm_kv_layer){.key_state = xm_arena_strdup(&p->arena, a->key_state),
                             .value_state = xm_arena_strdup(&p->arena, a->value_state),
                             .heads = d->heads_kv,
                             .d = d->d,
                             .dv = d->dv,
                             .k_element = d->k_cache,
                             .v_element = d->v_cache,
                             .page_bytes = page.bytes,
                             .window = d->window};
    return list[*out].key_state && list[*out].value_state
               ? XM_OK
               : xm_no_memory(l->err, "a cached layer");
}

/* Beam index and key mask are read by the host as well, so they must be inputs. */
static enum xm_status
host_input(struct xm_lower *l, const struct xm_value *v, const char *what,
           const char **name)
{
    if (xm_is_none(v))
        return XM_OK;
    if (v->node->op != XM_OP_PARAMETER)
        return xm_fail(l->err, XM_UNSUPPORTED,
                       "the %s of attention is computed by %s '%s', but must be an input",
                       what, xm_op_info(v->node->op)->text, v->node->name);
    const char *text = xm_port_name(v->node, v);
    if (*name && strcmp(*name, text) != 0)
        return xm_fail(l->err, XM_UNSUPPORTED,
                       "attention layers use two %ss: '%s' and '%s'", what, *name, text);
    *name = xm_arena_strdup(&l->p->arena, text);
    return *name ? XM_OK : xm_fail(l->err, XM_NO_MEMORY, "out of memory while lowering");
}

static enum xm_status
attention_desc(struct xm_lower *l, const struct xm_node *n, struct xm_attention_desc *d)
{
    const struct xm_attention_attr *a = &n->attr.attention;
    const struct xm_shape *q = &xm_in(n, XM_ATTENTION_Q)->type.shape;
    const struct xm_shape *out = &n->out[0].type.shape;
    struct xm_value *k = xm_in(n, XM_ATTENTION_K);
    struct xm_dim heads_kv = xm_is_none(k) ? q->dim[2] : k->type.shape.dim[2];
    if (!xm_dim_is_const(q->dim[2]) || !xm_dim_is_const(q->dim[3]) ||
        !xm_dim_is_const(heads_kv) || !xm_dim_is_const(out->dim[3]))
        return xm_fail(l->err, XM_UNSUPPORTED, "its heads or head size are not constant");
    *d = (struct xm_attention_desc){.heads_q = (uint32_t)q->dim[2].n,
                                    .heads_kv = (uint32_t)heads_kv.n,
                                    .d = (uint32_t)q->dim[3].n,
                                    .dv = (uint32_t)out->dim[3].n,
                                    .scale = a->scale,
                                    .soft_cap = a->soft_cap,
                                    .causal = a->causal,
                                    .window = (uint64_t)a->window,
                                    .page_tokens = l->p->config.kv_block_tokens,
                                    .element = xm_lower_element(&n->out[0]),
                                    .k_cache = l->p->config.key_cache_precision,
                                    .v_cache = l->p->config.value_cache_precision,
                                    .epsilon = a->epsilon};
    XM_TRY(xm_lower_f32_buffer(l, xm_in(n, XM_ATTENTION_Q_GAMMA), &d->q_gamma));
    XM_TRY(xm_lower_f32_buffer(l, xm_in(n, XM_ATTENTION_K_GAMMA), &d->k_gamma));
    XM_TRY(xm_lower_f32_buffer(l, xm_in(n, XM_ATTENTION_V_GAMMA), &d->v_gamma));
    return xm_lower_f32_buffer(l, xm_in(n, XM_ATTENTION_SINKS), &d->sinks);
}

static struct xm_step_cost
attention_cost(const struct xm_attention_desc *d)
{
    const uint64_t width = (uint64_t)d->d + d->dv;
    const uint64_t head = xm_attention_row_bytes(d->k_cache, d->d) +
                          xm_attention_row_bytes(d->v_cache, d->dv);
    return (struct xm_step_cost){.result = XM_ATTENTION_OUT,
                                 .key_bytes = d->heads_kv * head,
                                 .key_multiply_adds = d->heads_q * width,
                                 .window = d->window,
                                 .causal = d->causal};
}

static enum xm_status
lower_attention(struct xm_lower *l, struct xm_node *n)
{
    struct xm_attention_desc desc;
    struct xm_step_operand operands[XM_ATTENTION_N_OPERANDS];
    uint32_t layer = 0;
    XM_TRY(attention_desc(l, n, &desc));
    XM_TRY(find_layer(l, &n->attr.attention, &desc, &layer));
    desc.heads_kv = l->p->kv[layer].heads; /* a layer without K and V reads another's */
    if (l->p->kv[layer].d != desc.d || l->p->kv[layer].dv != desc.dv)
        return xm_fail(l->err, XM_UNSUPPORTED,
                       "it reads a cache of heads of %u and %u, its own have %u and %u",
                       l->p->kv[layer].d, l->p->kv[layer].dv, desc.d, desc.dv);
    XM_TRY(host_input(l, xm_in(n, XM_ATTENTION_BEAM_IDX), "beam index", &l->p->beam_idx));
    XM_TRY(host_input(l, xm_in(n, XM_ATTENTION_KEY_MASK), "key mask", &l->p->key_mask));
    const char *why = xm_attention_supports(xm_engine_info(l->p->engine), &desc);
    if (why)
        return xm_fail(l->err, XM_UNSUPPORTED, "%s", why);
    static const struct {
        int operand;
        bool is_f32;
    } tensors[] = {{XM_ATTENTION_Q, false},  {XM_ATTENTION_K, false},
                   {XM_ATTENTION_V, false},  {XM_ATTENTION_MASK, false},
                   {XM_ATTENTION_COS, true}, {XM_ATTENTION_SIN, true}};
    xm_lower_absent(operands, XM_ATTENTION_N_OPERANDS); /* some are the request's */
    operands[XM_ATTENTION_BEAM_IDX].input = XM_ATTENTION_BEAM_IDX; /* the host's */
    for (size_t i = 0; i < XM_ARRAY_LEN(tensors); i++)
        XM_TRY(xm_lower_input_as(l, n, (uint32_t)tensors[i].operand,
                                 tensors[i].is_f32 ? XM_F32 : desc.element,
                                 &operands[tensors[i].operand]));
    XM_TRY(xm_lower_input(l, n, XM_ATTENTION_KEY_MASK, &operands[XM_ATTENTION_KEY_MASK]));
    XM_TRY(xm_lower_result(l, n, 0, desc.element, &operands[XM_ATTENTION_OUT]));
    const uint64_t cols = (uint64_t)desc.heads_q * desc.dv;
    struct xm_primitive *primitive = NULL;
    desc.prepared = xm_lower_form_wanted(l, &n->out[0], cols);
    XM_TRY(xm_attention_create(l->p->engine, &desc, &primitive, l->err));
    if (xm_attention_emits(primitive))
        XM_TRY(emit(l, primitive, &operands[XM_ATTENTION_OUT], &desc.prepared, cols,
                    &operands[XM_ATTENTION_PREPARED]));
    struct xm_step *step = NULL;
    XM_TRY(xm_lower_step(l, n, XM_STEP_ATTENTION, primitive, operands, &step));
    step->layer = layer;
    step->cost = attention_cost(&desc);
    return XM_OK;
}

/* ---- mixture of experts ------------------------------------------------------------ */

static enum xm_status
lower_router(struct xm_lower *l, struct xm_node *n)
{
    struct xm_router_desc desc = {.routing = n->attr.router};
    struct xm_step_operand operands[XM_ROUTER_N_OPERANDS];
    XM_TRY(xm_lower_f32_buffer(l, xm_in(n, 1), &desc.bias));
    XM_TRY(xm_lower_f32_buffer(l, xm_in(n, 2), &desc.expert_scale));
    XM_TRY(xm_lower_input_as(l, n, 0, XM_F32, &operands[XM_ROUTER_LOGITS]));
    XM_TRY(xm_lower_result(l, n, 0, XM_F32, &operands[XM_ROUTER_WEIGHTS]));
    XM_TRY(xm_lower_result(l, n, 1, XM_I32, &operands[XM_ROUTER_IDS]));
    struct xm_primitive *primitive = NULL;
    XM_TRY(xm_router_create(l->p->engine, &desc, &primitive, l->err));
    return finish(l, n, primitive, operands, NULL);
}

static enum xm_status
lower_gather_matmul(struct xm_lower *l, struct xm_node *n)
{
    struct xm_gather_matmul_desc desc = {0};
    struct xm_step_operand operands[XM_GATHER_MATMUL_N_OPERANDS];
    XM_TRY(xm_lower_weight(l, xm_in(n, 1), &desc.weight));
    XM_TRY(xm_lower_f32_buffer(l, xm_in(n, 3), &desc.bias));
    if (xm_gather_matmul_supports(xm_engine_info(l->p->engine), &desc.weight->host))
        return XM_UNSUPPORTED;
    XM_TRY(xm_lower_input(l, n, 0, &operands[XM_GATHER_MATMUL_A]));
    XM_TRY(xm_lower_input(l, n, 2, &operands[XM_GATHER_MATMUL_IDS]));
    desc.src = xm_lower_element_of(l, &operands[XM_GATHER_MATMUL_A]);
    desc.ids = xm_lower_element_of(l, &operands[XM_GATHER_MATMUL_IDS]);
    desc.dst = xm_lower_element(&n->out[0]);
    XM_TRY(xm_lower_result(l, n, 0, desc.dst, &operands[XM_GATHER_MATMUL_OUT]));
    struct xm_primitive *primitive = NULL;
    XM_TRY(xm_gather_matmul_create(l->p->engine, &desc, &primitive, l->err));
    struct xm_step_cost cost = {.result = XM_GATHER_MATMUL_OUT};
    add_cost(&cost, &desc.weight->host, 1);
    return finish(l, n, primitive, operands, &cost);
}

static enum xm_status
moe_weights(struct xm_lower *l, const struct xm_node *n, struct xm_moe_desc *d,
            uint64_t *host_experts)
{
    const struct xm_value *const experts[] = {
        xm_in(n, XM_MOE_W_GATE), xm_in(n, XM_MOE_W_UP), xm_in(n, XM_MOE_W_DOWN)};
    struct xm_device_weight *w[XM_ARRAY_LEN(experts)];
    XM_TRY(xm_lower_experts(l, experts, XM_ARRAY_LEN(experts), w, host_experts));
    d->experts.gate = w[0];
    d->experts.up = w[1];
    d->experts.down = w[2];
    XM_TRY(xm_lower_f32_buffer(l, xm_in(n, XM_MOE_BIAS_GATE), &d->experts.bias_gate));
    XM_TRY(xm_lower_f32_buffer(l, xm_in(n, XM_MOE_BIAS_UP), &d->experts.bias_up));
    XM_TRY(xm_lower_f32_buffer(l, xm_in(n, XM_MOE_BIAS_DOWN), &d->experts.bias_down));
    XM_TRY(xm_lower_f32_buffer(l, xm_in(n, XM_MOE_FACTOR), &d->experts.factor));
    XM_TRY(xm_lower_f32_buffer(l, xm_in(n, XM_MOE_ROUTER_BIAS), &d->router_bias));
    XM_TRY(xm_lower_f32_buffer(l, xm_in(n, XM_MOE_EXPERT_SCALE), &d->expert_scale));
    XM_TRY(xm_lower_weight(l, xm_in(n, XM_MOE_SHARED_GATE), &d->shared.gate));
    XM_TRY(xm_lower_weight(l, xm_in(n, XM_MOE_SHARED_UP), &d->shared.up));
    XM_TRY(xm_lower_weight(l, xm_in(n, XM_MOE_SHARED_DOWN), &d->shared.down));
    return xm_lower_weight(l, xm_in(n, XM_MOE_SHARED_GATE_GATE), &d->shared_gate_gate);
}

static struct xm_step_cost
moe_cost(const struct xm_moe_desc *d)
{
    const struct xm_device_weight *routed[] = {d->experts.gate, d->experts.up,
                                               d->experts.down};
    const struct xm_device_weight *shared[] = {d->shared.gate, d->shared.up,
                                               d->shared.down};
    struct xm_step_cost cost = {.result = XM_MOE_OUT};
    for (size_t i = 0; i < XM_ARRAY_LEN(routed); i++) {
        if (routed[i])
            add_cost(&cost, &routed[i]->host, (uint64_t)d->attr.routing.top_k);
        if (shared[i])
            add_cost(&cost, &shared[i]->host, 1);
    }
    return cost;
}

/* Whether ids are below `experts` whatever was computed: a top-k or a router has made them. */
static bool
are_experts(const struct xm_value *ids, int64_t experts)
{
    while ((ids->node->op == XM_OP_CONVERT &&
            (ids->type.element == XM_I32 || ids->type.element == XM_I64)) ||
           ids->node->op == XM_OP_RESHAPE)
        ids = xm_in(ids->node, 0);
    const struct xm_node *n = ids->node;
    if (ids->index != 1 || (n->op != XM_OP_TOPK && n->op != XM_OP_MOE_ROUTER))
        return false;
    const struct xm_shape *scores = &xm_in(n, 0)->type.shape;
    int64_t axis = n->op == XM_OP_TOPK ? n->attr.topk.axis : -1;
    axis += axis < 0 ? (int64_t)scores->rank : 0;
    return axis >= 0 && axis < (int64_t)scores->rank &&
           xm_dim_is_const(scores->dim[axis]) && scores->dim[axis].n <= experts;
}

static enum xm_status
lower_moe(struct xm_lower *l, struct xm_node *n)
{
    struct xm_moe_desc desc = {.attr = n->attr.moe,
                               .chunk = l->p->config.ubatch,
                               .factor = xm_config_factor_columns(&l->p->config)};
    struct xm_step_operand operands[XM_MOE_N_OPERANDS];
    xm_lower_absent(operands, XM_MOE_N_OPERANDS);
    uint64_t host_experts = 0;
    XM_TRY(moe_weights(l, n, &desc, &host_experts));
    XM_TRY(xm_lower_input(l, n, XM_MOE_HIDDEN, &operands[XM_MOE_HIDDEN]));
    XM_TRY(xm_lower_input_as(l, n, XM_MOE_ROUTING, XM_F32, &operands[XM_MOE_ROUTING]));
    desc.by_ids = !xm_is_none(xm_in(n, XM_MOE_IDS));
    desc.ids_valid = are_experts(xm_in(n, XM_MOE_IDS), n->attr.moe.experts);
    XM_TRY(xm_lower_input_as(l, n, XM_MOE_IDS, XM_I32, &operands[XM_MOE_IDS]));
    desc.src = xm_lower_element_of(l, &operands[XM_MOE_HIDDEN]);
    desc.dst = desc.add = xm_lower_element(&n->out[0]);
    XM_TRY(xm_lower_input_as(l, n, XM_MOE_ADDEND, desc.dst, &operands[XM_MOE_ADDEND]));
    XM_TRY(xm_lower_result(l, n, 0, desc.dst, &operands[XM_MOE_OUT]));
    operands[XM_MOE_PREPARED].value = xm_lower_prepared_of(
        l, operands[XM_MOE_HIDDEN].value, desc.experts.gate->host.cols, &desc.prepared);
    struct xm_primitive *primitive = NULL;
    XM_TRY(xm_moe_create(l->p->engine, &desc, &primitive, l->err));
    const struct xm_step_cost cost = moe_cost(&desc);
    XM_TRY(finish(l, n, primitive, operands, &cost));
    l->p->steps[l->p->n_steps - 1].host_experts = host_experts;
    return XM_OK;
}

/* ---- what can be run --------------------------------------------------------------- */

static const struct xm_weight *
weight_of(struct xm_value *v)
{
    return v->node->op == XM_OP_WEIGHT ? &v->node->attr.weight : NULL;
}

/* The element type that a value has on a device, as far as primitives care: of floats each
 * takes f16 and f32 alike. */
static enum xm_element
type_of(const struct xm_value *v)
{
    return xm_element_is_float(v->type.element) ? XM_F32 : v->type.element;
}

/* A dimension, where it is constant; else 0. */
static uint32_t
size_of(const struct xm_value *v, uint32_t i)
{
    const struct xm_shape *s = &v->type.shape;
    return i < s->rank && xm_dim_is_const(s->dim[i]) && s->dim[i].n <= INT32_MAX
               ? (uint32_t)s->dim[i].n
               : 0;
}

static uint32_t
last_size_of(const struct xm_value *v)
{
    return v->type.shape.rank ? size_of(v, v->type.shape.rank - 1) : 0;
}

static const char *
why_not_rms_norm(const struct xm_lower_question *q)
{
    const struct xm_rms_norm_desc desc = {.src = type_of(q->in[0]), .dst = XM_F32};
    return xm_rms_norm_supports(&desc);
}

static const char *
why_not_row_chain(const struct xm_lower_question *q)
{
    struct xm_row_chain chain;
    if (xm_row_chain_parse(q->attr->row_chain.steps, &chain, NULL) != XM_OK)
        return "its steps are no chain";
    return xm_row_chain_supports(&chain, last_size_of(q->in[0]));
}

static const char *
why_not_rope(const struct xm_lower_question *q)
{
    const struct xm_rope_desc desc = {.element = type_of(q->in[0])};
    return xm_rope_supports(&desc);
}

static const char *
why_not_rope_tables(const struct xm_lower_question *q)
{
    const struct xm_rope_tables_desc desc = {.positions = type_of(q->in[0]),
                                             .r = last_size_of(q->in[1])};
    return xm_rope_tables_supports(&desc);
}

static const char *
why_not_glu(const struct xm_lower_question *q)
{
    const struct xm_glu_desc desc = {.activation =
                                         (enum xm_activation)q->attr->glu.activation,
                                     .element = type_of(q->in[0])};
    return xm_glu_supports(&desc);
}

/* The cache's form is chosen later, among those that every attention takes. */
static const char *
why_not_attention(const struct xm_lower_question *q)
{
    const struct xm_value *queries = q->in[XM_ATTENTION_Q];
    const struct xm_value *k = q->in[XM_ATTENTION_K], *v = q->in[XM_ATTENTION_V];
    const struct xm_attention_desc desc = {.heads_q = size_of(queries, 2),
                                           .heads_kv =
                                               size_of(xm_is_none(k) ? queries : k, 2),
                                           .d = size_of(queries, 3),
                                           .dv = size_of(xm_is_none(v) ? queries : v, 3),
                                           .page_tokens = 1,
                                           .element = type_of(queries),
                                           .k_cache = XM_F16,
                                           .v_cache = XM_F16};
    return xm_attention_supports(q->device, &desc);
}

static const char *
why_not_linear(const struct xm_lower_question *q)
{
    const struct xm_weight *first = weight_of(q->in[XM_LINEAR_W]);
    const char *why = NULL;
    for (uint32_t i = XM_LINEAR_W; i < q->n_in && !why; i += XM_LINEAR_SEGMENT) {
        const struct xm_weight *w = weight_of(q->in[i]);
        if (!first || !w)
            return "a matrix is not a stored weight";
        why = xm_linear_supports(q->device, w, XM_F32, XM_F32);
        if (!why)
            why = xm_linear_cannot_join(first, w);
    }
    if (!why && q->attr && q->attr->linear.glu && q->n_in > XM_LINEAR_BIAS + 1)
        why = xm_linear_cannot_gate(first,
                                    weight_of(q->in[XM_LINEAR_W + XM_LINEAR_SEGMENT]));
    return why;
}

/* Weights that are computed are multiplied on the host. */
static const char *
why_not_gather_matmul(const struct xm_lower_question *q)
{
    const struct xm_weight *w = weight_of(q->in[1]);
    return w ? xm_gather_matmul_supports(q->device, w) : NULL;
}

static const char *
why_not_router(const struct xm_lower_question *q)
{
    return xm_router_supports(&q->attr->router, last_size_of(q->in[0]));
}

static const char *
why_not_moe(const struct xm_lower_question *q)
{
    const struct xm_moe_attr *a = &q->attr->moe;
    struct xm_value *const *in = q->in;
    const struct xm_moe_weights experts = {.gate = weight_of(in[XM_MOE_W_GATE]),
                                           .up = weight_of(in[XM_MOE_W_UP]),
                                           .down = weight_of(in[XM_MOE_W_DOWN])};
    const struct xm_moe_weights shared = {.gate = weight_of(in[XM_MOE_SHARED_GATE]),
                                          .up = weight_of(in[XM_MOE_SHARED_UP]),
                                          .down = weight_of(in[XM_MOE_SHARED_DOWN])};
    if (!experts.gate || !experts.down)
        return "the expert weights are not constants";
    return xm_moe_supports(a, &experts, &shared, weight_of(in[XM_MOE_SHARED_GATE_GATE]));
}

/* Compressed experts that no kernel takes are lowered to other operations. Those have no shared
 * expert: with one, the reason refuses the fusion. */
static const char *
why_not_moe_compressed(const struct xm_lower_question *q)
{
    return q->attr->moe.shared ? why_not_moe(q) : NULL;
}

/* clang-format off */
const struct xm_lower_op xm_lower_heavy_ops[] = {
    { XM_OP_MATMUL,                     lower_matmul,          NULL },
    { XM_OP_LINEAR,                     lower_linear,          why_not_linear },
    { XM_OP_GATHER,                     lower_gather,          NULL },
    { XM_OP_RMS_NORM,                   lower_rms_norm,        why_not_rms_norm },
    { XM_OP_ROW_CHAIN,                  lower_row_chain,       why_not_row_chain },
    { XM_OP_ROPE_TABLES,                lower_rope_tables,     why_not_rope_tables },
    { XM_OP_ROPE,                       lower_rope,            why_not_rope },
    { XM_OP_GLU,                        lower_glu,             why_not_glu },
    { XM_OP_ATTENTION,                  lower_attention,       why_not_attention },
    { XM_OP_MOE_ROUTER,                 lower_router,          why_not_router },
    { XM_OP_GATHER_MATMUL,              lower_gather_matmul,   why_not_gather_matmul },
    { XM_OP_MOE_3GEMM_FUSED_COMPRESSED, lower_moe,             why_not_moe },
    { XM_OP_MOE_COMPRESSED,             NULL,                  why_not_moe_compressed },
    { XM_OP_NONE, NULL, NULL }
};
/* clang-format on */
