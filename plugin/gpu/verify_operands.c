/* SPDX-License-Identifier: Apache-2.0
 *
 * Evaluates the node of a step with the host reference, from the operands that the device had.
 *
 * The step says which input or result of the node each of its operands is. Inputs of the node that
 * are no operands come from the graph: constants and small weights are evaluated, large weights
 * stay packed (the reference reads them itself), shapes follow from the symbols' values.
 */
#include "plugin/gpu/verify_operands.h"

#include <math.h>
#include <string.h>

#include "plugin/gpu/verify_cache.h"
#include "primitives/attention/attention.h"
#include "runtime/reference/reference.h"

/* ---- where operands are ------------------------------------------------------------ */

uint32_t
xm_verify_n_results(const struct xm_verify_step *v)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->step->n_operands; i++)
        n += v->step->operand[i].result != XM_NO_VALUE;
    return n;
}

const struct xm_operand *
xm_verify_result(const struct xm_verify_step *v, uint32_t i)
{
    uint32_t at = 0;
    while (v->step->operand[at].result != i)
        at++;
    return &v->operands[at];
}

/* Returns the operand that is input i of the node; NULL: there is none. */
static const struct xm_operand *
input_of(const struct xm_verify_step *v, uint32_t i)
{
    for (uint32_t at = 0; at < v->step->n_operands; at++) {
        if (v->step->operand[at].input == i)
            return &v->operands[at];
    }
    return NULL;
}

/* ---- operands as tensors ----------------------------------------------------------- */

/* Reads an operand from the device into a new tensor. Floats become f32, so that the reference sees
 * one float type; integers become `integer`. */
static enum xm_status
read_as(const struct xm_verify_step *v, const struct xm_operand *o,
        enum xm_element integer, struct xm_tensor **out, struct xm_error *err)
{
    uint64_t n = xm_operand_elements(o), bytes = 0;
    bool is_float = xm_element_is_float(o->element);
    if (!xm_element_bytes(o->element, n, &bytes))
        return xm_fail(err, XM_INVALID, "an operand of %s has no size",
                       xm_element_text(o->element));
    void *packed = xm_malloc((size_t)bytes + 1);
    if (!packed)
        return xm_no_memory(err, "an operand on the host");
    enum xm_status s = xm_request_read(v->request, o, packed, err);
    if (s == XM_OK)
        s = xm_tensor_create(out, is_float ? XM_F32 : integer, o->rank, o->dim, err);
    for (uint64_t i = 0; i < n && s == XM_OK; i++) {
        if (is_float)
            (*out)->f[i] = xm_load_float(o->element, packed, i);
        else
            (*out)->i[i] = xm_load_int(o->element, packed, i);
    }
    xm_free(packed);
    return s;
}

enum xm_status
xm_verify_read(const struct xm_verify_step *v, const struct xm_operand *o,
               struct xm_tensor **out, struct xm_error *err)
{
    return read_as(v, o, o->element, out, err);
}

/* Makes a tensor of a value whose integers are known from the graph: shapes, axes. */
static enum xm_status
content_tensor(const struct xm_verify_step *v, const struct xm_value *value,
               struct xm_tensor **out, struct xm_error *err)
{
    uint32_t n_bindings;
    const struct xm_binding *bindings = xm_request_bindings(v->request, &n_bindings);
    int64_t dim[1] = {value->content.n};
    XM_TRY(xm_tensor_create(out, value->type.element, value->type.shape.rank ? 1 : 0, dim,
                            err));
    for (uint32_t i = 0; i < value->content.n; i++)
        XM_TRY(
            xm_dim_eval(value->content.e[i], bindings, n_bindings, &(*out)->i[i], err));
    return XM_OK;
}

/* Makes a tensor of an input that was never on the device. *out stays NULL for weights of two and
 * more dimensions, which the reference reads itself. XM_NOT_FOUND: the graph does not know it. */
static enum xm_status
graph_tensor(const struct xm_verify_step *v, const struct xm_value *value,
             struct xm_tensor **out, struct xm_error *err)
{
    const struct xm_node *n = value->node;
    if (xm_is_none(value) || (n->op == XM_OP_WEIGHT && n->attr.weight.rank > 1))
        return XM_OK;
    if (n->op != XM_OP_CONST && n->op != XM_OP_WEIGHT)
        return xm_content_known(&value->content) ? content_tensor(v, value, out, err)
                                                 : XM_NOT_FOUND;
    XM_TRY(xm_evaluate_node(n, NULL, out, NULL, NULL, 0, err));
    if ((*out)->f)
        (*out)->element = XM_F32;
    return XM_OK;
}

static enum xm_status
input_tensor(const struct xm_verify_step *v, uint32_t i, struct xm_tensor **out,
             struct xm_error *err)
{
    const struct xm_node *n = v->step->node;
    const struct xm_value *value = xm_in(n, i);
    const struct xm_operand *o = input_of(v, i);
    if (xm_is_none(value) || (o && !o->buffer))
        return XM_OK; /* the beam index, which the host has applied */
    return o ? read_as(v, o, value->type.element, out, err)
             : graph_tensor(v, value, out, err);
}

/* ---- the reference ----------------------------------------------------------------- */

/* Returns the largest magnitude in the block of n elements that has element i. */
static float
most_around(const struct xm_tensor *t, uint64_t i, uint64_t n)
{
    float most = 0.0f;
    for (uint64_t k = i - i % n; k < i - i % n + n; k++)
        most = fmaxf(most, fabsf(t->f[k]));
    return most;
}

/* Returns half the distance of adjacent numbers of type `stored` at element i of rows of n.
 * f16, f32: half a unit in the last place. i8: 1/254 of the block's largest magnitude, and 1/8 more
 * because the scale is rounded, too. u4: 1/16 of the block's largest magnitude; the levels of u4
 * are further apart the larger they are, and this is the mean error if all elements are large. i8
 * and u4 have a lower bound, that of the smallest scale. */
static float
half_unit(const struct xm_tensor *t, enum xm_element stored, uint64_t i, uint64_t n)
{
    const uint64_t block = n % XM_KV_BLOCK ? n : XM_KV_BLOCK;
    switch (stored) {
    case XM_I8:
        return fmaxf(most_around(t, i, block) * (1.125f / 254.0f), 0x1p-27f);
    case XM_U4:
        return fmaxf(most_around(t, i, block) / 16.0f, 0x1p-12f);
    case XM_F16:
        return t->f[i] * 0x1p-11f;
    default:
        return t->f[i] * 0x1p-24f;
    }
}

/* Returns a copy of t with each element half a unit larger or smaller, at random. If a cache of
 * this type rotates rows, the error is added to the rotated rows. NULL: no memory. */
static struct xm_tensor *
off_by_rounding(const struct xm_tensor *t, enum xm_element stored, uint32_t seed)
{
    const uint64_t n = t->rank ? (uint64_t)t->dim[t->rank - 1] : 1;
    const bool rotates = xm_attention_rotates(stored) && n > 0;
    struct xm_tensor *r = NULL, *rows = NULL;
    if (xm_tensor_create(&r, t->element, t->rank, t->dim, NULL) != XM_OK ||
        xm_tensor_create(&rows, t->element, t->rank, t->dim, NULL) != XM_OK) {
        xm_tensor_destroy(r);
        return NULL;
    }
    memcpy(rows->f, t->f, t->n * sizeof(*t->f));
    if (rotates)
        xm_ref_rotate(rows->f, t->n / n, n);
    for (uint64_t i = 0; i < t->n; i++) {
        seed = seed * 1664525u + 1013904223u;
        const float by = half_unit(rows, stored, i, n);
        r->f[i] = rows->f[i] + (seed >> 31 ? by : -by);
    }
    if (rotates)
        xm_ref_rotate(r->f, t->n / n, n);
    xm_tensor_destroy(rows);
    return r;
}

static enum xm_status
run_reference(const struct xm_verify_step *v, struct xm_tensor *const *in,
              struct xm_state_store *states, struct xm_tensor **out, struct xm_error *err)
{
    uint32_t n_bindings;
    const struct xm_binding *bindings = xm_request_bindings(v->request, &n_bindings);
    return xm_evaluate_node(v->step->node, (const struct xm_tensor *const *)in, out,
                            states, bindings, n_bindings, err);
}

/* ---- attention ---------------------------------------------------------------------- */

/* Computes attention of the queries q to these cached keys and values, without new ones. */
static enum xm_status
attend(const struct xm_verify_step *v, struct xm_tensor *const *in, struct xm_tensor *q,
       struct xm_tensor *const *cached, struct xm_tensor **out, struct xm_error *err)
{
    const struct xm_attention_attr *a = &v->step->node->attr.attention;
    struct xm_tensor *alone[XM_ATTENTION_N_IN];
    struct xm_state_store *states = xm_state_store_create();
    memcpy(alone, in, sizeof(alone));
    alone[XM_ATTENTION_Q] = q;
    alone[XM_ATTENTION_K] = alone[XM_ATTENTION_V] = NULL;
    enum xm_status s =
        states ? xm_state_set(states, a->key_state, cached[XM_VERIFY_KEYS], err)
               : xm_no_memory(err, "a step's operands");
    if (s == XM_OK)
        s = xm_state_set(states, a->value_state, cached[XM_VERIFY_VALUES], err);
    if (s == XM_OK)
        s = run_reference(v, alone, states, out, err);
    xm_state_store_destroy(states);
    return s;
}

/* Computes attention of the queries to the cached keys and values, all with random errors of the
 * size that the device's type of activations causes. Shows how much softmax amplifies them. */
static enum xm_status
attend_rounded(const struct xm_verify_step *v, struct xm_tensor *const *in, uint32_t seed,
               struct xm_tensor *const *cached, struct xm_tensor **out,
               struct xm_error *err)
{
    const enum xm_element e = v->operands[XM_ATTENTION_Q].element;
    struct xm_tensor *q = off_by_rounding(in[XM_ATTENTION_Q], e, seed),
                     *rows[XM_VERIFY_CACHED];
    bool is_complete = q;
    for (uint32_t i = 0; i < XM_VERIFY_CACHED; i++) {
        rows[i] = off_by_rounding(cached[i], e, seed + 1 + i);
        is_complete = is_complete && rows[i];
    }
    enum xm_status s = is_complete ? attend(v, in, q, rows, out, err)
                                   : xm_no_memory(err, "a step's operands");
    for (uint32_t i = 0; i < XM_VERIFY_CACHED; i++)
        xm_tensor_destroy(rows[i]);
    xm_tensor_destroy(q);
    return s;
}

/* The reference attends to the keys and values that the device's cache holds, not to exact ones. A
 * cache of few bits changes keys far more than the errors to be found; where logits are steep,
 * softmax then chooses another position, and the results have nothing in common. The contents of
 * the cache are compared separately (xm_verify_stored). */
static enum xm_status
evaluate_attention(const struct xm_verify_step *v, struct xm_tensor *const *in,
                   struct xm_verify_results *out, struct xm_error *err)
{
    struct xm_tensor *of_exact = NULL; /* evaluated only to update v->states */
    XM_TRY(run_reference(v, in, v->states, &of_exact, err));
    xm_tensor_destroy(of_exact);
    XM_TRY(xm_verify_cache(v->request, v->step, v->states, out->cached, err));
    for (uint32_t i = 0; i < XM_VERIFY_ROUNDED; i++)
        XM_TRY(attend_rounded(v, in, 1000 * i, out->cached, &out->rounded[i], err));
    return attend(v, in, in[XM_ATTENTION_Q], out->cached, out->reference, err);
}

enum xm_status
xm_verify_stored(const struct xm_verify_step *v, enum xm_verify_cached which,
                 struct xm_verify_rows *out, struct xm_error *err)
{
    const struct xm_kv_layer *kv = &xm_request_program(v->request)->kv[v->step->layer];
    const bool is_key = which == XM_VERIFY_KEYS;
    out->element = is_key ? kv->k_element : kv->v_element;
    out->exact = xm_state_get(v->states, is_key ? kv->key_state : kv->value_state);
    out->rounded = off_by_rounding(out->exact, out->element, 0);
    return out->rounded ? XM_OK : xm_no_memory(err, "rows of the KV cache");
}

/* ---- all steps ----------------------------------------------------------------------- */

static enum xm_status
evaluate(const struct xm_verify_step *v, struct xm_tensor **in,
         struct xm_verify_results *out, struct xm_error *err)
{
    const struct xm_node *n = v->step->node;
    for (uint32_t i = 0; i < n->n_in; i++)
        XM_TRY(input_tensor(v, i, &in[i], err));
    return v->step->kind == XM_STEP_ATTENTION
               ? evaluate_attention(v, in, out, err)
               : run_reference(v, in, v->states, out->reference, err);
}

enum xm_status
xm_verify_reference(const struct xm_verify_step *v, struct xm_verify_results *out,
                    struct xm_error *err)
{
    const struct xm_node *n = v->step->node;
    if (v->step->kind == XM_STEP_HOST)
        return XM_NOT_FOUND;
    out->reference = xm_calloc(xm_verify_n_results(v) + 1, sizeof(*out->reference));
    if (!out->reference)
        return xm_no_memory(err, "a step's results");
    if (!n) /* a conversion between element types: the reference is its operand */
        return xm_verify_read(v, input_of(v, 0), out->reference, err);
    struct xm_tensor **in = xm_calloc(n->n_in + 1, sizeof(struct xm_tensor *));
    if (!in)
        return xm_no_memory(err, "a step's operands");
    enum xm_status s = evaluate(v, in, out, err);
    for (uint32_t i = 0; i < n->n_in; i++)
        xm_tensor_destroy(in[i]);
    xm_free(in);
    return s;
}

void
xm_verify_free(const struct xm_verify_step *v, struct xm_verify_results *out)
{
    for (uint32_t i = 0; out->reference && i < xm_verify_n_results(v); i++)
        xm_tensor_destroy(out->reference[i]);
    for (uint32_t i = 0; i < XM_VERIFY_ROUNDED; i++)
        xm_tensor_destroy(out->rounded[i]);
    for (uint32_t i = 0; i < XM_VERIFY_CACHED; i++)
        xm_tensor_destroy(out->cached[i]);
    xm_free(out->reference);
}
