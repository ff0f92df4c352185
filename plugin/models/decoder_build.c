/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds inputs, embedding, layers and head. The steps of a layer, of which an architecture may
 * lack some (post norms, experts, per-layer embeddings, the layer's scale):
 *
 *     h += post_norm(attention(norm(h)))
 *     h += post_norm(feed_forward(norm(h)))        dense, experts, or both side by side
 *     h += post_norm(proj(act(gate(h)) ple))
 *     h *= scale
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "plugin/models/decoder_graph.h"
#include "transformations/graph/symbols.h"

/* ---- inputs and embeddings ------------------------------------------------------------ */

/* Adds a parameter [batch] or [batch, second], named as in OpenVINO's models. */
static struct xm_value *
input(struct xm_decoder_graph *s, const char *name, enum xm_element e,
      const struct xm_dim *second)
{
    struct xm_type type = {.element = e, .shape.rank = second ? 2 : 1};
    type.shape.dim[0] = xm_dim_symbol(&s->g->dims, XM_SYMBOL_BATCH);
    if (second)
        type.shape.dim[1] = *second;
    struct xm_value *v = xm_parameter(&s->b, name, &type);
    const char **names = v ? xm_arena_alloc(&s->g->arena, sizeof(*names)) : NULL;
    if (!names)
        return NULL;
    names[0] = name;
    v->names = names;
    v->n_names = 1;
    v->node->name = name;
    return v;
}

static bool
make_inputs(struct xm_decoder_graph *s)
{
    struct xm_dim_pool *dims = &s->g->dims;
    const struct xm_dim tokens = xm_dim_symbol(dims, XM_SYMBOL_TOKENS);
    const struct xm_dim all =
        xm_dim_add(dims, xm_dim_symbol(dims, XM_SYMBOL_PAST), tokens);
    s->ids = input(s, "input_ids", XM_I64, &tokens);
    s->mask = input(s, "attention_mask", XM_I64, &all);
    s->positions = input(s, "position_ids", XM_I64, &tokens);
    s->beams = input(s, "beam_idx", XM_I32, NULL);
    s->batch = xm_dg_op3(s, XM_OP_GATHER, xm_dg_shape_of(s, s->ids, XM_I64),
                         xm_dg_one(s, 0), xm_dg_int(s, 0));
    return s->mask && s->positions && s->beams && s->batch;
}

/* Looks up the rows of a table for the token ids: [B,T] to [B,T,n]. */
static struct xm_value *
look_up(struct xm_decoder_graph *s, struct xm_value *table)
{
    return xm_dg_op3(s, XM_OP_GATHER, table, xm_convert(&s->b, s->ids, XM_I32),
                     xm_const_ints(&s->b, XM_I32, &(int64_t){0}, -1));
}

static struct xm_value *
embed(struct xm_decoder_graph *s)
{
    s->table = xm_dg_tensor(s, XM_TENSOR_TOKEN_EMBD, 0);
    struct xm_value *x = look_up(s, s->table);
    if (s->d->traits & XM_TRAIT_SCALED_EMBEDDING)
        x = xm_dg_scale(s, x, sqrtf((float)s->d->hidden));
    return x;
}

/* Computes the per-layer embeddings [B,T,L,P] from the token and its embedding x:
 *  (norm(proj(x) / sqrt(H)) + E[token] sqrt(P)) / sqrt(2) */
static struct xm_value *
embed_for_layers(struct xm_decoder_graph *s, struct xm_value *x)
{
    const struct xm_decoder *d = s->d;
    const int64_t apart[4] = {0, 0, d->n_layers, d->ple};
    struct xm_value *of_token = xm_dg_scale(
        s, look_up(s, xm_dg_tensor(s, XM_TENSOR_PLE_EMBD, 0)), sqrtf((float)d->ple));
    of_token = xm_dg_reshape(s, of_token, true, 4, apart);
    struct xm_value *of_x =
        xm_dg_scale(s, xm_dg_product(s, XM_TENSOR_PLE_MODEL_PROJ, 0, x),
                    1.0f / sqrtf((float)d->hidden));
    of_x =
        xm_dg_norm(s, XM_TENSOR_PLE_PROJ_NORM, 0, xm_dg_reshape(s, of_x, true, 4, apart));
    return xm_dg_scale(s, xm_op2(&s->b, XM_OP_ADD, of_x, of_token), sqrtf(0.5f));
}

/* ---- a layer -------------------------------------------------------------------------- */

/* Applies a norm to x, if the layer has it. */
static struct xm_value *
maybe_normed(struct xm_decoder_graph *s, enum xm_decoder_tensor gamma, uint32_t layer,
             struct xm_value *x)
{
    return xm_decoder_has(s->d, gamma, layer) ? xm_dg_norm(s, gamma, layer, x) : x;
}

static struct xm_value *
dense(struct xm_decoder_graph *s, uint32_t layer, struct xm_value *x)
{
    struct xm_value *gate =
        xm_dg_activation(s, xm_dg_product(s, XM_TENSOR_FFN_GATE, layer, x));
    struct xm_value *up = xm_dg_product(s, XM_TENSOR_FFN_UP, layer, x);
    return xm_dg_product(s, XM_TENSOR_FFN_DOWN, layer,
                         xm_op2(&s->b, XM_OP_MULTIPLY, gate, up));
}

/* Computes the dense feed-forward and the experts side by side on the stream h, each behind its own
 * norm. The router reads h / rms(h) / sqrt(H) times its scale. */
static struct xm_value *
dense_beside_experts(struct xm_decoder_graph *s, uint32_t layer, struct xm_value *h)
{
    struct xm_value *one = dense(s, layer, xm_dg_norm(s, XM_TENSOR_FFN_NORM, layer, h));
    struct xm_value *scored = xm_op2(&s->b, XM_OP_MULTIPLY, xm_dg_unit(s, h),
                                     xm_dg_tensor(s, XM_TENSOR_ROUTER_SCALE, layer));
    scored = xm_dg_scale(s, scored, 1.0f / sqrtf((float)s->d->hidden));
    struct xm_value *two = xm_dg_experts(
        s, layer, xm_dg_norm(s, XM_TENSOR_PRE_FFN_NORM_2, layer, h), scored);
    one = xm_dg_norm(s, XM_TENSOR_POST_FFN_NORM_1, layer, one);
    two = xm_dg_norm(s, XM_TENSOR_POST_FFN_NORM_2, layer, two);
    return xm_op2(&s->b, XM_OP_ADD, one, two);
}

static struct xm_value *
feed_forward(struct xm_decoder_graph *s, uint32_t layer, struct xm_value *h)
{
    const struct xm_decoder_layer *l = &s->d->layer[layer];
    const enum xm_decoder_tensor norm = s->d->traits & XM_TRAIT_FFN_NORM_IS_POST_ATTN
                                            ? XM_TENSOR_POST_ATTN_NORM
                                            : XM_TENSOR_FFN_NORM;
    if (l->has_experts && l->ffn)
        return dense_beside_experts(s, layer, h);
    struct xm_value *x = xm_dg_norm(s, norm, layer, h);
    return l->has_experts ? xm_dg_experts(s, layer, x, x) : dense(s, layer, x);
}

/* Returns the value that the per-layer embedding adds to the stream h. */
static struct xm_value *
layer_embedding(struct xm_decoder_graph *s, uint32_t layer, struct xm_value *h)
{
    struct xm_value *gate =
        xm_dg_activation(s, xm_dg_product(s, XM_TENSOR_PLE_GATE, layer, h));
    struct xm_value *own =
        xm_dg_op3(s, XM_OP_GATHER, s->ple, xm_dg_int(s, layer), xm_dg_int(s, 2));
    struct xm_value *x = xm_dg_product(s, XM_TENSOR_PLE_PROJ, layer,
                                       xm_op2(&s->b, XM_OP_MULTIPLY, gate, own));
    return xm_dg_norm(s, XM_TENSOR_PLE_POST_NORM, layer, x);
}

static struct xm_value *
make_layer(struct xm_decoder_graph *s, uint32_t layer, struct xm_value *h)
{
    struct xm_builder *b = &s->b;
    const bool post_norm = !(s->d->traits & XM_TRAIT_FFN_NORM_IS_POST_ATTN);
    struct xm_value *x =
        xm_dg_attention(s, layer, xm_dg_norm(s, XM_TENSOR_ATTN_NORM, layer, h));
    if (post_norm)
        x = maybe_normed(s, XM_TENSOR_POST_ATTN_NORM, layer, x);
    h = xm_op2(b, XM_OP_ADD, h, x);
    x = maybe_normed(s, XM_TENSOR_POST_FFN_NORM, layer, feed_forward(s, layer, h));
    h = xm_op2(b, XM_OP_ADD, h, x);
    if (s->d->ple)
        h = xm_op2(b, XM_OP_ADD, h, layer_embedding(s, layer, h));
    if (xm_decoder_has(s->d, XM_TENSOR_LAYER_SCALE, layer))
        h = xm_op2(b, XM_OP_MULTIPLY, h, xm_dg_tensor(s, XM_TENSOR_LAYER_SCALE, layer));
    return h;
}

/* ---- the whole ------------------------------------------------------------------------ */

static struct xm_value *
head(struct xm_decoder_graph *s, struct xm_value *x)
{
    const float cap = s->d->logit_cap;
    struct xm_value *w = xm_decoder_has(s->d, XM_TENSOR_OUTPUT, 0)
                             ? xm_dg_tensor(s, XM_TENSOR_OUTPUT, 0)
                             : s->table;
    x = xm_matmul(&s->b, xm_dg_norm(s, XM_TENSOR_OUTPUT_NORM, 0, x), w, false, true);
    if (cap == 0.0f)
        return x;
    x = xm_op2(&s->b, XM_OP_DIVIDE, x, xm_const_float(&s->b, XM_F32, cap));
    return xm_dg_scale(s, xm_op1(&s->b, XM_OP_TANH, x), cap);
}

static bool
make_graph(struct xm_decoder_graph *s)
{
    static const char *const names[] = {"logits"};
    if (!make_inputs(s))
        return false;
    struct xm_value *x = embed(s);
    if (s->d->ple)
        s->ple = embed_for_layers(s, x);
    for (uint32_t i = 0; i < s->d->n_layers && x; i++) {
        s->b.name = xm_arena_printf(&s->g->arena, "blk.%" PRIu32, i);
        x = make_layer(s, i, x);
    }
    s->b.name = "output";
    struct xm_value *logits = head(s, x);
    if (!logits)
        return false;
    logits->names = names;
    logits->n_names = 1;
    return xm_result(&s->b, "logits", logits) != NULL;
}

enum xm_status
xm_decoder_build(const struct xm_decoder *d, const struct xm_decoder_weights *weights,
                 enum xm_experts_form form, struct xm_graph *g, struct xm_error *err)
{
    const size_t bytes = d->n_layers * sizeof(struct xm_value *);
    struct xm_decoder_graph s = {
        .d = d,
        .weights = weights,
        .form = form,
        .g = g,
        .b = xm_builder_at_end(g),
        .keys = xm_arena_alloc(&g->arena, bytes),
        .values = xm_arena_alloc(&g->arena, bytes),
    };
    if (s.keys && s.values && make_graph(&s))
        return XM_OK;
    if (g->err.status != XM_OK)
        return xm_fail(err, g->err.status, "%s", g->err.text);
    return xm_no_memory(err, "the graph of a model");
}
