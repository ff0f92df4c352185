/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowering of attention: its step, and the layer of the KV cache that it reads.
 */
#include "plugin/lower/lower.h"

#include <string.h>

/* Extends the window of a cache to that of one more layer that reads it; 0: no window. */
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
        return xm_fail(l->err, XM_UNSUPPORTED,
                       "the size of a page of its KV cache overflows");
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

/* Sets *name to the input of the program that is operand v of attention (beam index or key mask).
 * The host reads it as well, so it must be an input, the same in all layers. */
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
    desc.heads_kv = l->p->kv[layer].heads; /* K, V may be those of another layer */
    if (l->p->kv[layer].d != desc.d || l->p->kv[layer].dv != desc.dv)
        return xm_fail(l->err, XM_UNSUPPORTED,
                       "it reads a KV cache with heads of %u and %u elements, but its "
                       "own heads have %u and %u",
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
    xm_lower_absent(operands, XM_ATTENTION_N_OPERANDS); /* a run sets the tables */
    operands[XM_ATTENTION_BEAM_IDX].input = XM_ATTENTION_BEAM_IDX; /* read by the host */
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
        XM_TRY(xm_lower_emit(l, primitive, &operands[XM_ATTENTION_OUT], &desc.prepared,
                             cols, &operands[XM_ATTENTION_PREPARED]));
    struct xm_step *step = NULL;
    XM_TRY(xm_lower_step(l, n, XM_STEP_ATTENTION, primitive, operands, &step));
    step->layer = layer;
    step->cost = attention_cost(&desc);
    return XM_OK;
}

/* The element types of the cache and the page size are chosen later, among those that every
 * attention supports: so any will do here. */
static const char *
why_not_attention(const struct xm_lower_question *q)
{
    const struct xm_value *queries = q->in[XM_ATTENTION_Q];
    const struct xm_value *k = q->in[XM_ATTENTION_K], *v = q->in[XM_ATTENTION_V];
    const struct xm_attention_desc desc = {
        .heads_q = xm_asked_size(queries, 2),
        .heads_kv = xm_asked_size(xm_is_none(k) ? queries : k, 2),
        .d = xm_asked_size(queries, 3),
        .dv = xm_asked_size(xm_is_none(v) ? queries : v, 3),
        .page_tokens = 1,
        .element = xm_asked_type(queries),
        .k_cache = XM_F16,
        .v_cache = XM_F16};
    return xm_attention_supports(q->device, &desc);
}

/* clang-format off */
const struct xm_lower_op xm_lower_attention_ops[] = {
    { XM_OP_ATTENTION, lower_attention, why_not_attention },
    { XM_OP_NONE, NULL, NULL }
};
/* clang-format on */
