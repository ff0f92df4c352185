/* SPDX-License-Identifier: Apache-2.0
 *
 * From a step's operands to its node's and back.
 *
 * Which of the node's inputs and results its operands are is said by the step. What is not among
 * them comes from the graph: constants and small weights are evaluated, large weights stay packed
 * (the reference reads them itself), shapes follow from the symbols' values.
 */
#include "plugin/gpu/verify_operands.h"

#include <math.h>
#include <string.h>

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

/* NULL: input i of the node is no operand. */
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

/* All floats are held as f32, so that the reference sees one float type. */
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

/* Known integers: shapes, axes. */
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

/* An operand that never was on the device. Weights of two and more dimensions stay NULL. */
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
        return XM_OK; /* the host has read it: which sequence it is, and there is one */
    return o ? read_as(v, o, value->type.element, out, err)
             : graph_tensor(v, value, out, err);
}

/* ---- the reference ----------------------------------------------------------------- */

/* The largest magnitude among the n elements that begin at a multiple of n and have element i. */
static float
most_around(const struct xm_tensor *t, uint64_t i, uint64_t n)
{
    float most = 0.0f;
    for (uint64_t k = i - i % n; k < i - i % n + n; k++)
        most = fmaxf(most, fabsf(t->f[k]));
    return most;
}

/* Half a unit of element i of rows of n: of f16 and f32 in the last place; of i8 the largest of a
 * block by 254, and an eighth more for its scale; of u4 that by 16, about the mean of its levels.
 */
static float
half_unit(const struct xm_tensor *t, enum xm_element stored, uint64_t i, uint64_t n)
{
    const uint64_t block = n % XM_KV_BLOCK ? n : XM_KV_BLOCK;
    switch (stored) {
    case XM_I8:
        return most_around(t, i, block) * (1.125f / 254.0f);
    case XM_U4:
        return most_around(t, i, block) / 16.0f;
    case XM_F16:
        return t->f[i] * 0x1p-11f;
    default:
        return t->f[i] * 0x1p-24f;
    }
}

/* Each element up or down by half a unit, at random, of rows as they are stored: rotated where the
 * cache rotates them. NULL: out of memory. */
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

/* The states so far, as the cache has rounded them. */
static enum xm_status
rounded_states(const struct xm_verify_step *v, const struct xm_kv_layer *kv,
               uint32_t seed, struct xm_state_store *out, struct xm_error *err)
{
    const struct xm_attention_attr *a = &v->step->node->attr.attention;
    const char *const names[] = {a->key_state, a->value_state};
    const enum xm_element stored[] = {kv->k_element, kv->v_element};
    for (size_t i = 0; i < XM_ARRAY_LEN(names); i++) {
        const struct xm_tensor *t = xm_state_get(v->states, names[i]);
        struct xm_tensor *r = t ? off_by_rounding(t, stored[i], seed) : NULL;
        if (t && !r)
            return xm_no_memory(err, "a step's operands");
        enum xm_status s = r ? xm_state_set(out, names[i], r, err) : XM_OK;
        xm_tensor_destroy(r);
        XM_TRY(s);
    }
    return XM_OK;
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

/* Attention norms and rotates its inputs, then stores them; softmax raises what that changes. */
static enum xm_status
evaluate_rounded(const struct xm_verify_step *v, struct xm_tensor *const *in,
                 uint32_t seed, struct xm_tensor **out, struct xm_error *err)
{
    const struct xm_kv_layer *kv = &xm_request_program(v->request)->kv[v->step->layer];
    const enum xm_element stored[] = {[XM_ATTENTION_Q] =
                                          v->operands[XM_ATTENTION_Q].element,
                                      [XM_ATTENTION_K] = kv->k_element,
                                      [XM_ATTENTION_V] = kv->v_element};
    struct xm_state_store *states = xm_state_store_create();
    struct xm_tensor *all[XM_ATTENTION_N_IN], *own[XM_ATTENTION_V + 1] = {NULL};
    enum xm_status s = states ? rounded_states(v, kv, seed, states, err)
                              : xm_no_memory(err, "a step's operands");
    for (uint32_t i = 0; i < XM_ATTENTION_N_IN; i++)
        all[i] = in[i];
    for (uint32_t i = XM_ATTENTION_Q; i <= XM_ATTENTION_V && s == XM_OK; i++) {
        if (!in[i])
            continue;
        all[i] = own[i] = off_by_rounding(in[i], stored[i], seed + i);
        if (!own[i])
            s = xm_no_memory(err, "a step's operands");
    }
    if (s == XM_OK)
        s = run_reference(v, all, states, out, err);
    for (size_t i = 0; i < XM_ARRAY_LEN(own); i++)
        xm_tensor_destroy(own[i]);
    xm_state_store_destroy(states);
    return s;
}

static enum xm_status
evaluate(const struct xm_verify_step *v, struct xm_tensor **in, struct xm_tensor **out,
         struct xm_tensor **rounded, struct xm_error *err)
{
    const struct xm_node *n = v->step->node;
    for (uint32_t i = 0; i < n->n_in; i++)
        XM_TRY(input_tensor(v, i, &in[i], err));
    for (uint32_t i = 0; i < XM_VERIFY_ROUNDED && v->step->kind == XM_STEP_ATTENTION; i++)
        XM_TRY(evaluate_rounded(v, in, 1000 * i, &rounded[i], err));
    return run_reference(v, in, v->states, out, err);
}

enum xm_status
xm_verify_reference(const struct xm_verify_step *v, struct xm_tensor **out,
                    struct xm_tensor *rounded[XM_VERIFY_ROUNDED], struct xm_error *err)
{
    const struct xm_node *n = v->step->node;
    if (v->step->kind == XM_STEP_HOST)
        return XM_NOT_FOUND;
    if (!n) /* a conversion between element types: the same numbers */
        return xm_verify_read(v, input_of(v, 0), out, err);
    struct xm_tensor **in = xm_calloc(n->n_in + 1, sizeof(struct xm_tensor *));
    if (!in)
        return xm_no_memory(err, "a step's operands");
    enum xm_status s = evaluate(v, in, out, rounded, err);
    for (uint32_t i = 0; i < n->n_in; i++)
        xm_tensor_destroy(in[i]);
    xm_free(in);
    return s;
}
