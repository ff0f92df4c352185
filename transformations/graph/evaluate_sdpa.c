/* SPDX-License-Identifier: Apache-2.0
 *
 * References of attention: `sdpa`, as files have it, and `attention` with its states.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "transformations/graph/evaluate_ops.h"

static const struct xm_tensor *
optional(const struct xm_eval_call *c, uint32_t i)
{
    return i < c->node->n_in ? c->in[i] : NULL;
}

static enum xm_status
run(const struct xm_eval_call *c, const struct xm_ref_attention *a)
{
    return xm_ref_attention(a) == XM_OK ? XM_OK : xm_eval_no_memory(c->err);
}

/* ---- scaled dot-product attention: q[…,T,D] k[…,S,D] v[…,S,Dv] --------------------- */

enum { SDPA_Q, SDPA_K, SDPA_V, SDPA_MASK, SDPA_SCALE, SDPA_SINKS };

struct sdpa {
    const struct xm_eval_call *c;
    const struct xm_tensor *mask, *sinks;
    int64_t mask_stride[XM_MAX_RANK];
    float *addend; /* [T,S], mask of the present head; NULL: no mask         */
};

static enum xm_status
find_mask(struct sdpa *s, int64_t keys)
{
    const struct xm_eval_call *c = s->c;
    const uint32_t rank = c->out[0]->rank;
    int64_t dim[XM_MAX_RANK];
    struct xm_walk w;
    memcpy(dim, c->out[0]->dim, rank * sizeof(*dim));
    dim[rank - 1] = keys;
    s->mask = c->node->attr.sdpa.causal ? NULL : optional(c, SDPA_MASK);
    if (s->mask) {
        xm_walk_begin(&w, rank, dim);
        if (!xm_walk_add_broadcast(&w, s->mask))
            return xm_fail(c->err, XM_INVALID,
                           "its mask does not broadcast to the scores");
        memcpy(s->mask_stride, w.stride[0], rank * sizeof(*dim));
    }
    s->sinks = optional(c, SDPA_SINKS);
    if (s->sinks && s->sinks->n != 1 &&
        (rank < 3 || s->sinks->n != (uint64_t)dim[rank - 3]))
        return xm_fail(c->err, XM_INVALID,
                       "it has %" PRIu64 " sinks, expected one for each head",
                       s->sinks->n);
    return XM_OK;
}

/* Fills the addend of one head from the mask, beginning at element `first`. In a boolean mask false
 * hides a position. */
static void
fill_addend(const struct sdpa *s, int64_t first, uint64_t tokens, uint64_t keys)
{
    const int64_t *stride = s->mask_stride + s->c->out[0]->rank - 2;
    for (uint64_t t = 0; t < tokens; t++) {
        for (uint64_t j = 0; j < keys; j++) {
            int64_t at = first + (int64_t)t * stride[0] + (int64_t)j * stride[1];
            float hidden = s->mask->i && !s->mask->i[at] ? -INFINITY : 0.0f;
            s->addend[t * keys + j] = s->mask->f ? s->mask->f[at] : hidden;
        }
    }
}

/* Starts a walk over the heads with q, k, v, mask and sinks as arrays; each is repeated along
 * dimensions that it lacks or in which its size is 1. */
static void
walk_heads(const struct sdpa *s, struct xm_walk *w)
{
    const struct xm_tensor *out = s->c->out[0];
    const struct xm_tensor sinks = {.rank = s->sinks && s->sinks->n > 1,
                                    .dim = {s->sinks ? (int64_t)s->sinks->n : 1}};
    xm_walk_begin(w, out->rank - 2, out->dim);
    for (uint32_t i = SDPA_Q; i <= SDPA_V; i++) {
        struct xm_tensor matrices = *s->c->in[i];
        matrices.rank -= 2;
        (void)xm_walk_add_broadcast(w, &matrices);
    }
    xm_walk_add(w, 0, s->mask_stride);
    (void)xm_walk_add_broadcast(w, &sinks);
}

/* Runs head after head; *a has the members that all heads share. */
static enum xm_status
sdpa_heads(const struct sdpa *s, struct xm_ref_attention *a)
{
    const struct xm_eval_call *c = s->c;
    const uint64_t q = a->tokens * a->d, k = a->keys * a->d, v = a->keys * a->dv;
    struct xm_walk w;
    a->out = c->out[0]->f;
    walk_heads(s, &w);
    for (; xm_walk_next(&w); a->out += a->tokens * a->dv) {
        a->q = c->in[SDPA_Q]->f + (uint64_t)w.at[0] * q;
        a->k = c->in[SDPA_K]->f + (uint64_t)w.at[1] * k;
        a->v = c->in[SDPA_V]->f + (uint64_t)w.at[2] * v;
        if (s->mask)
            fill_addend(s, w.at[3], a->tokens, a->keys);
        if (s->sinks)
            a->sinks = s->sinks->f + w.at[4];
        XM_TRY(run(c, a));
    }
    return XM_OK;
}

enum xm_status
xm_eval_sdpa(struct xm_eval_call *c)
{
    const struct xm_tensor *q = c->in[SDPA_Q], *v = c->in[SDPA_V];
    const struct xm_tensor *scale = optional(c, SDPA_SCALE);
    struct sdpa s = {.c = c};
    struct xm_ref_attention a = {
        .tokens = (uint64_t)q->dim[q->rank - 2],
        .keys = (uint64_t)v->dim[v->rank - 2],
        .heads_q = 1,
        .heads_kv = 1,
        .d = (uint64_t)q->dim[q->rank - 1],
        .dv = (uint64_t)v->dim[v->rank - 1],
        .causal = c->node->attr.sdpa.causal,
        .mask_heads = 1,
    };
    a.scale = scale && scale->n > 0 ? scale->f[0] : 1.0f / sqrtf((float)a.d);
    XM_TRY(find_mask(&s, (int64_t)a.keys));
    if (c->out[0]->n == 0)
        return XM_OK;
    if (s.mask) {
        int64_t dim[] = {(int64_t)a.tokens, (int64_t)a.keys};
        struct xm_tensor *addend;
        XM_TRY(xm_tensor_create(&addend, XM_F32, 2, dim, c->err));
        a.mask = s.addend = addend->f;
        enum xm_status status = sdpa_heads(&s, &a);
        xm_tensor_destroy(addend);
        return status;
    }
    return sdpa_heads(&s, &a);
}

/* ---- attention on states ----------------------------------------------------------- */

/* Sets *row to the row of the old state that sequence b continues. */
static enum xm_status
continued(const struct xm_eval_call *c, const struct xm_tensor *old, int64_t b,
          int64_t *row)
{
    const struct xm_tensor *beam = c->in[XM_ATTENTION_BEAM_IDX];
    if (beam && (uint64_t)b >= beam->n)
        return xm_fail(c->err, XM_INVALID,
                       "the beam indices are fewer than the sequences, only %" PRIu64,
                       beam->n);
    *row = beam ? beam->i[b] : b;
    if (*row < 0 || *row >= old->dim[0])
        return xm_fail(c->err, XM_INVALID,
                       "sequence %" PRId64 " continues row %" PRId64
                       " of a state of %" PRId64 " rows",
                       b, *row, old->dim[0]);
    return XM_OK;
}

/* grown[b] = old[continued row], followed by x[b]; all are [B,S,H,D]. */
static enum xm_status
append(const struct xm_eval_call *c, const struct xm_tensor *old,
       const struct xm_tensor *x, struct xm_tensor *grown)
{
    uint64_t more = xm_tensor_size(x, 1, 4), before = xm_tensor_size(grown, 1, 4) - more;
    for (int64_t b = 0; b < x->dim[0]; b++) {
        float *to = grown->f + (uint64_t)b * (before + more);
        int64_t row;
        if (before > 0) {
            XM_TRY(continued(c, old, b, &row));
            memcpy(to, old->f + (uint64_t)row * before, before * sizeof(*to));
        }
        memcpy(to + before, x->f + (uint64_t)b * more, more * sizeof(*to));
    }
    return XM_OK;
}

/* Gets the state `variable` as this layer sees it: with operand i appended or, if the operand is
 * absent, as another layer has left it in this run. */
static enum xm_status
state_of(const struct xm_eval_call *c, const char *variable, uint32_t i,
         const struct xm_tensor **out)
{
    const struct xm_tensor *x = c->in[i], *old = xm_state_get(c->states, variable);
    const struct xm_tensor *written = xm_state_get(c->pending, variable);
    int64_t dim[4];
    *out = written ? written : old;
    if (!x && !*out)
        return xm_fail(c->err, XM_INVALID,
                       "no layer before it has written the state '%s'", variable);
    if (!x)
        return XM_OK;
    if (x->rank != 4 || (old && (old->rank != 4 || !old->f || old->dim[2] != x->dim[2] ||
                                 old->dim[3] != x->dim[3])))
        return xm_fail(c->err, XM_INVALID,
                       "the shape of operand %u does not match the state '%s'", i,
                       variable);
    memcpy(dim, x->dim, sizeof(dim));
    dim[1] += old ? old->dim[1] : 0;
    struct xm_tensor *grown;
    XM_TRY(xm_tensor_create(&grown, x->element, 4, dim, c->err));
    enum xm_status status = append(c, old, x, grown);
    if (status != XM_OK) {
        xm_tensor_destroy(grown);
        return status;
    }
    *out = grown;
    return xm_state_put(c->pending, variable, grown, c->err);
}

static enum xm_status
check_attention(const struct xm_eval_call *c, const struct xm_tensor *k,
                const struct xm_tensor *v)
{
    const struct xm_tensor *q = c->in[XM_ATTENTION_Q],
                           *key_mask = c->in[XM_ATTENTION_KEY_MASK];
    const struct xm_tensor *mask = c->in[XM_ATTENTION_MASK],
                           *sinks = c->in[XM_ATTENTION_SINKS];
    if (k->rank != 4 || v->rank != 4 || !k->f || !v->f)
        return xm_fail(c->err, XM_INVALID, "the rank of its states is not 4");
    int64_t batch = q->dim[0], tokens = q->dim[1], heads = q->dim[2], keys = k->dim[1];
    if (k->dim[0] != batch || v->dim[0] != batch || v->dim[1] != keys || keys < tokens ||
        v->dim[2] != k->dim[2] || k->dim[3] != q->dim[3] || k->dim[2] == 0 ||
        heads % k->dim[2] != 0)
        return xm_fail(c->err, XM_INVALID,
                       "the shapes of its query and states do not match");
    if (c->out[0]->n != (uint64_t)(batch * tokens * heads * v->dim[3]))
        return xm_fail(c->err, XM_INVALID, "its result has the wrong number of elements");
    if (key_mask && key_mask->dim[1] != keys)
        return xm_fail(c->err, XM_INVALID,
                       "the shape of its key mask is not [%" PRId64 ", %" PRId64 "]",
                       batch, keys);
    if (mask && mask->dim[3] != keys)
        return xm_fail(c->err, XM_INVALID,
                       "its mask does not have the shape of the scores");
    if (sinks && sinks->n != (uint64_t)heads)
        return xm_fail(c->err, XM_INVALID,
                       "it has %" PRIu64 " sinks for %" PRId64 " heads", sinks->n, heads);
    return XM_OK;
}

/* Sets the pointers of *a to sequence b. */
static void
point_at(const struct xm_eval_call *c, const struct xm_tensor *k,
         const struct xm_tensor *v, uint64_t b, struct xm_ref_attention *a)
{
    const struct xm_tensor *key_mask = c->in[XM_ATTENTION_KEY_MASK],
                           *mask = c->in[XM_ATTENTION_MASK];
    a->q = c->in[XM_ATTENTION_Q]->f + b * a->tokens * a->heads_q * a->d;
    a->k = k->f + b * a->keys * a->heads_kv * a->d;
    a->v = v->f + b * a->keys * a->heads_kv * a->dv;
    a->out = c->out[0]->f + b * a->tokens * a->heads_q * a->dv;
    if (key_mask)
        a->key_mask = key_mask->i + b * a->keys;
    if (mask) {
        a->mask_heads = (uint64_t)mask->dim[1];
        a->mask =
            mask->f + (mask->dim[0] == 1 ? 0 : b) * a->mask_heads * a->tokens * a->keys;
    }
}

/* ---- norms and rotation on the way in ---------------------------------------------- */

/* Applies norm and rotation to operand i: *own is a new tensor; NULL: neither is wanted. */
static enum xm_status
prepare(const struct xm_eval_call *c, uint32_t i, uint32_t gamma, bool rotated,
        struct xm_tensor **own)
{
    const struct xm_tensor *x = c->in[i], *g = c->in[gamma],
                           *cos = c->in[XM_ATTENTION_COS], *sin = c->in[XM_ATTENTION_SIN];
    if (!x || (!g && !(rotated && cos)))
        return XM_OK;
    uint64_t d = (uint64_t)x->dim[3];
    XM_TRY(xm_tensor_copy(own, x, c->err));
    if (g && x->n > 0)
        xm_ref_rms_norm(x->f, g->f, x->n / d, d, c->node->attr.attention.epsilon,
                        (*own)->f);
    if (!rotated || !cos || x->n == 0)
        return XM_OK;
    if (sin->n != cos->n || (cos->dim[0] != 1 && cos->dim[0] != x->dim[0]))
        return xm_fail(c->err, XM_INVALID,
                       "the shapes of cos and sin do not match operand %u", i);
    struct xm_tensor *normed;
    XM_TRY(xm_tensor_copy(&normed, *own, c->err));
    xm_eval_rotate(normed, cos, sin, *own);
    xm_tensor_destroy(normed);
    return XM_OK;
}

static enum xm_status
attend(struct xm_eval_call *c)
{
    const struct xm_attention_attr *attr = &c->node->attr.attention;
    const struct xm_tensor *q = c->in[XM_ATTENTION_Q], *k, *v;
    XM_TRY(state_of(c, attr->key_state, XM_ATTENTION_K, &k));
    XM_TRY(state_of(c, attr->value_state, XM_ATTENTION_V, &v));
    XM_TRY(check_attention(c, k, v));
    struct xm_ref_attention a = {
        .tokens = (uint64_t)q->dim[1],
        .keys = (uint64_t)k->dim[1],
        .heads_q = (uint64_t)q->dim[2],
        .heads_kv = (uint64_t)k->dim[2],
        .d = (uint64_t)q->dim[3],
        .dv = (uint64_t)v->dim[3],
        .past = (uint64_t)(k->dim[1] - q->dim[1]),
        .scale = attr->scale,
        .soft_cap = attr->soft_cap,
        .causal = attr->causal,
        .window = attr->window > 0 ? (uint64_t)attr->window : 0,
        .sinks = c->in[XM_ATTENTION_SINKS] ? c->in[XM_ATTENTION_SINKS]->f : NULL,
    };
    for (uint64_t b = 0; c->out[0]->n > 0 && b < (uint64_t)q->dim[0]; b++) {
        point_at(c, k, v, b, &a);
        XM_TRY(run(c, &a));
    }
    return XM_OK;
}

enum xm_status
xm_eval_attention(struct xm_eval_call *c)
{
    enum { PREPARED = 3 };
    const struct xm_tensor *in[XM_ATTENTION_N_IN];
    struct xm_tensor *own[PREPARED] = {NULL};
    struct xm_eval_call prepared = *c;
    enum xm_status status = XM_OK;
    memcpy(in, c->in, sizeof(in));
    prepared.in = in;
    for (uint32_t i = 0; i < PREPARED && status == XM_OK; i++) {
        status = prepare(c, XM_ATTENTION_Q + i, XM_ATTENTION_Q_GAMMA + i,
                         i != XM_ATTENTION_V, &own[i]);
        if (own[i])
            in[XM_ATTENTION_Q + i] = own[i];
    }
    if (status == XM_OK)
        status = attend(&prepared);
    for (uint32_t i = 0; i < PREPARED; i++)
        xm_tensor_destroy(own[i]);
    return status;
}
