/* SPDX-License-Identifier: Apache-2.0
 *
 * Replaces sdpa with its states by attention on a paged cache.
 *
 *     K = concat(gather(read_value(k), beam_idx), k_new)    assign(k, K)      V likewise
 *     sdpa(q, repeat_heads(K), repeat_heads(V), mask, scale)
 *  ->
 *     attention(q, k_new, v_new, beam_idx, key mask | mask, sinks) key_state=k value_state=v
 *
 * q is [B,Hq,T,D], k_new [B,Hkv,T,D]; attention works on [B,T,H,D]. repeat_heads is the chain
 * unsqueeze, broadcast, reshape of grouped heads (or nothing). A layer whose K is the state of an
 * earlier layer (shared KV) gets no K and V of its own. A mask that is causal, with or without a
 * window and padding, becomes attributes (mask_kind.h).
 *
 * Not done: states that the graph crops; boolean masks of unknown kind; sdpa with causal=true, in
 * which query i sees keys 0 … i of the whole cache, whatever past is.
 */
#include <math.h>
#include <string.h>

#include "transformations/passes/mask_kind.h"
#include "transformations/passes/pass_util.h"
#include "transformations/pipeline.h"

/* ---- the pieces -------------------------------------------------------------------- */

/* The value [B,Hkv,S,D] whose heads are repeated to [B,Hkv*G,S,D]; v itself if they are not. */
static struct xm_value *
without_repeated_heads(struct xm_value *v)
{
    struct xm_node *merge = v->node;
    if (merge->op != XM_OP_RESHAPE || xm_in(merge, 0)->node->op != XM_OP_BROADCAST)
        return v;
    struct xm_node *repeat = xm_in(merge, 0)->node;
    struct xm_value *x = xm_in(repeat, 0);
    if (x->node->op == XM_OP_RESHAPE || x->node->op == XM_OP_UNSQUEEZE)
        x = xm_in(x->node, 0);
    const struct xm_shape *s = &x->type.shape, *five = &xm_in(repeat, 0)->type.shape;
    bool is_repeat = s->rank == 4 && five->rank == 5 &&
                     xm_dim_eq(five->dim[1], s->dim[1]) && xm_dim_is(five->dim[2], 1) &&
                     xm_dim_eq(five->dim[3], s->dim[2]) &&
                     xm_dim_eq(five->dim[4], s->dim[3]);
    const struct xm_shape *out = &v->type.shape;
    is_repeat = is_repeat && out->rank == 4 && xm_dim_eq(out->dim[2], s->dim[2]) &&
                xm_dim_eq(out->dim[3], s->dim[3]);
    return is_repeat ? x : v;
}

/* A cached tensor: the old part, the new part, and the name of its state. */
struct cached {
    struct xm_value *whole;    /* concat(past, added), [B,Hkv,past+T,D]    */
    struct xm_value *added;    /* [B,Hkv,T,D]    */
    struct xm_value *beam_idx; /* NULL: rows are not reordered */
    const char *variable;
    struct xm_node *assign; /* NULL: another layer has already taken it */
};

static struct xm_node *
assign_of(const struct xm_value *v, const char *variable)
{
    for (const struct xm_use *u = v->uses; u; u = u->next) {
        if (u->user->op == XM_OP_ASSIGN && strcmp(u->user->attr.name.name, variable) == 0)
            return u->user;
    }
    return NULL;
}

static bool
find_cached(struct xm_value *v, struct cached *c)
{
    struct xm_node *concat = v->node;
    if (concat->op != XM_OP_CONCAT || concat->n_in != 2 ||
        (concat->attr.axis.axis != 2 && concat->attr.axis.axis != -2) ||
        v->type.shape.rank != 4)
        return false;
    struct xm_value *past = xm_in(concat, 0);
    *c = (struct cached){.whole = v, .added = xm_in(concat, 1)};
    if (past->node->op == XM_OP_GATHER && xm_is_axis(xm_in(past->node, 2), 4, 0)) {
        c->beam_idx = xm_in(past->node, 1);
        past = xm_in(past->node, 0);
    }
    if (past->node->op != XM_OP_READ_VALUE)
        return false;
    c->variable = past->node->attr.name.name;
    c->assign = assign_of(v, c->variable);
    return c->assign != NULL;
}

/* ---- masks: each is classified once ------------------------------------------------ */

enum { MAX_MASKS = 16 };

struct mask_cache {
    uint32_t n;
    struct xm_value *mask[MAX_MASKS];
    struct xm_mask_kind kind[MAX_MASKS];
};

static struct xm_mask_kind
kind_of(struct mask_cache *masks, struct xm_graph *g, struct xm_value *mask)
{
    struct xm_mask_kind kind = {0};
    for (uint32_t i = 0; i < masks->n; i++) {
        if (masks->mask[i] == mask)
            return masks->kind[i];
    }
    if (xm_mask_classify(g, mask, &kind, &g->err) == XM_OK && masks->n < MAX_MASKS) {
        masks->mask[masks->n] = mask;
        masks->kind[masks->n++] = kind;
    }
    return kind;
}

/* ---- the replacement --------------------------------------------------------------- */

static bool
scale_of(const struct xm_node *sdpa, float *scale)
{
    if (sdpa->n_in > 4 && !xm_is_none(xm_in(sdpa, 4)))
        return xm_value_is_scalar_const(xm_in(sdpa, 4), scale);
    struct xm_dim d = xm_in(sdpa, 0)->type.shape.dim[3];
    *scale = xm_dim_is_const(d) ? 1.0f / sqrtf((float)d.n) : 0.0f;
    return xm_dim_is_const(d);
}

static bool
set_mask(struct xm_graph *g, struct mask_cache *masks, const struct xm_node *sdpa,
         struct xm_attention_attr *a, struct xm_value **in)
{
    struct xm_value *mask = sdpa->n_in > 3 ? xm_in(sdpa, 3) : xm_none(g);
    if (xm_is_none(mask))
        return true;
    struct xm_mask_kind kind = kind_of(masks, g, mask);
    if (!kind.known) {
        in[XM_ATTENTION_MASK] = mask;
        return xm_element_is_float(mask->type.element) && mask->type.shape.rank == 4;
    }
    a->causal = kind.causal;
    a->window = kind.window;
    if (kind.key_mask)
        in[XM_ATTENTION_KEY_MASK] = kind.key_mask;
    return true;
}

static bool
set_keys(struct xm_graph *g, struct xm_builder *b, const struct xm_node *sdpa,
         struct xm_attention_attr *a, struct xm_value **in, struct cached *key,
         struct cached *value)
{
    if (!find_cached(without_repeated_heads(xm_in(sdpa, 1)), key) ||
        !find_cached(without_repeated_heads(xm_in(sdpa, 2)), value))
        return false;
    a->key_state = key->variable;
    a->value_state = value->variable;
    if (key->beam_idx)
        in[XM_ATTENTION_BEAM_IDX] = key->beam_idx;
    /* the first layer that reads a state also writes it; later layers share it */
    bool own = true;
    for (struct xm_node *n = g->first; n && n != sdpa; n = n->next) {
        if (n->op == XM_OP_ATTENTION &&
            strcmp(n->attr.attention.key_state, a->key_state) == 0)
            own = false;
    }
    if (own) {
        in[XM_ATTENTION_K] = xm_swap_heads(b, key->added);
        in[XM_ATTENTION_V] = xm_swap_heads(b, value->added);
    }
    return true;
}

/* Replaces the result: users that transpose it back to token-major take attention's result
 * directly. */
static void
replace_result(struct xm_graph *g, struct xm_builder *b, struct xm_node *sdpa,
               struct xm_value *attention)
{
    struct xm_value *old = &sdpa->out[0];
    for (struct xm_use *u = old->uses, *next; u; u = next) {
        next = u->next;
        if (u->user->n_out == 1 && xm_unswapped_heads(&u->user->out[0]) == old)
            xm_value_replace(g, &u->user->out[0], attention);
    }
    struct xm_value *back = xm_swap_heads(b, attention);
    if (back)
        xm_value_replace(g, old, back);
}

static bool
convert(struct xm_graph *g, const struct xm_caps *caps, struct mask_cache *masks,
        struct xm_node *sdpa)
{
    struct xm_builder b = xm_builder_before(g, sdpa);
    union xm_attr attr = {0};
    struct xm_attention_attr *a = &attr.attention;
    struct xm_value *in[XM_ATTENTION_N_IN];
    struct cached key, value;
    for (int i = 0; i < XM_ATTENTION_N_IN; i++)
        in[i] = xm_none(g);
    if (sdpa->attr.sdpa.causal || xm_in(sdpa, 0)->type.shape.rank != 4 ||
        !scale_of(sdpa, &a->scale) || !set_keys(g, &b, sdpa, a, in, &key, &value) ||
        !set_mask(g, masks, sdpa, a, in))
        return false;
    if (sdpa->n_in > 5 && !xm_is_none(xm_in(sdpa, 5)))
        in[XM_ATTENTION_SINKS] = xm_const_flat(&b, xm_in(sdpa, 5));
    in[XM_ATTENTION_Q] = xm_swap_heads(&b, xm_in(sdpa, 0));
    struct xm_node *attention =
        xm_fused_build(&b, caps, XM_OP_ATTENTION, &attr, in, XM_ATTENTION_N_IN);
    if (!attention)
        return false;
    replace_result(g, &b, sdpa, &attention->out[0]);
    return g->err.status == XM_OK;
}

/* Removes assigns to the states that attention now keeps in its cache. */
static void
remove_assigns(struct xm_graph *g)
{
    xm_for_each_node_safe(n, g)
    {
        bool held = false;
        for (struct xm_node *a = g->first; n->op == XM_OP_ASSIGN && a; a = a->next)
            held |= a->op == XM_OP_ATTENTION &&
                    (strcmp(a->attr.attention.key_state, n->attr.name.name) == 0 ||
                     strcmp(a->attr.attention.value_state, n->attr.name.name) == 0);
        if (held)
            xm_node_remove(g, n);
    }
}

bool
xm_pass_sdpa_to_paged_attention(struct xm_graph *g, const struct xm_caps *caps)
{
    struct mask_cache masks = {0};
    bool progress = false;
    xm_for_each_node_safe(n, g)
    {
        if (n->op == XM_OP_SDPA && n->out[0].n_uses > 0)
            progress |= convert(g, caps, &masks, n);
        if (g->err.status != XM_OK)
            return progress;
    }
    if (progress)
        remove_assigns(g);
    /* states, and inputs of attention that no implementation can run */
    xm_graph_remove_dead(g);
    return progress;
}
