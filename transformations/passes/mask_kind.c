/* SPDX-License-Identifier: Apache-2.0 */
#include "transformations/passes/mask_kind.h"

#include <math.h>

#include "transformations/graph/evaluate.h"
#include "transformations/graph/symbols.h"

enum {
    MAX_CONE = 512,           /* most nodes that a mask is computed from */
    MAX_CONSTANTS = 32,       /* most different numbers among them    */
    MAX_ELEMENTS = 64,        /* most elements of a constant          */
    LARGEST_WINDOW = 1 << 18, /* in tokens; longer probes take too long */
};

/* The nodes that a mask is computed from (its cone). */
struct cone {
    const struct xm_node *nodes[MAX_CONE];
    uint32_t n;
    int64_t constants[MAX_CONSTANTS]; /* numbers >= 2 in it: possible windows       */
    uint32_t n_constants;
    struct xm_value *key_mask;
    bool too_large, other_inputs;
};

/* Notes a number that the mask may compare a distance with. Numbers too large for any context (ends
 * of slices, the lowest float) cannot be windows. Numbers between LARGEST_WINDOW and those cannot
 * be probed. */
static void
note_number(struct cone *c, double v)
{
    v = fabs(v);
    if (!(v >= 2) || v >= 2147483648.0 || v != floor(v))
        return;
    for (uint32_t i = 0; i < c->n_constants; i++) {
        if ((double)c->constants[i] == v)
            return;
    }
    if (v > LARGEST_WINDOW || c->n_constants == MAX_CONSTANTS)
        c->too_large = true;
    else
        c->constants[c->n_constants++] = (int64_t)v;
}

static void
note_constants(struct cone *c, const struct xm_node *n)
{
    const struct xm_type *t = &n->out[0].type;
    uint64_t count;
    if (n->op == XM_OP_SHAPE_VALUE) {
        for (uint32_t i = 0; i < n->attr.shape_value.n; i++) {
            if (xm_dim_is_const(n->attr.shape_value.e[i]))
                note_number(c, (double)n->attr.shape_value.e[i].n);
        }
        return;
    }
    if (n->op != XM_OP_CONST || t->element == XM_BOOL)
        return;
    c->too_large |= !xm_static_elements(&t->shape, &count) || count > MAX_ELEMENTS ||
                    !xm_element_readable(t->element);
    for (uint64_t i = 0; i < count && !c->too_large; i++) {
        if (xm_element_is_int(t->element))
            note_number(c, (double)xm_load_int(t->element, n->attr.data.bytes, i));
        else
            note_number(c, (double)xm_load_float(t->element, n->attr.data.bytes, i));
    }
}

static void
visit(struct cone *c, struct xm_value *v)
{
    struct xm_node *n = v->node;
    for (uint32_t i = 0; i < c->n; i++) {
        if (c->nodes[i] == n)
            return;
    }
    if (c->n == MAX_CONE) {
        c->too_large = true;
        return;
    }
    c->nodes[c->n++] = n;
    if (n->op == XM_OP_PARAMETER) {
        bool is_key_mask = v->type.shape.rank == 2 &&
                           xm_element_is_int(v->type.element) &&
                           (!c->key_mask || c->key_mask == v);
        c->key_mask = is_key_mask ? v : c->key_mask;
        c->other_inputs |= !is_key_mask;
        return;
    }
    if (xm_op_info(n->op)->flags & XM_OPF_STATE || n->op == XM_OP_WEIGHT) {
        c->other_inputs = true;
        return;
    }
    note_constants(c, n);
    for (uint32_t i = 0; i < n->n_in; i++)
        visit(c, xm_in(n, i));
}

/* ---- probes ------------------------------------------------------------------------ */

struct probe {
    int64_t batch, tokens, past;
    bool padded;
};

static bool
is_padding(const struct probe *p, int64_t b, int64_t k)
{
    return p->padded && b > 0 && (k == 0 || k == 2);
}

/* Makes the key mask of a probe, which also binds the symbols batch and, as its length, past +
 * tokens. */
static enum xm_status
key_mask_tensor(const struct cone *c, const struct probe *p, struct xm_tensor **out,
                struct xm_error *err)
{
    int64_t keys = p->past + p->tokens, dim[2] = {p->batch, keys};
    XM_TRY(xm_tensor_create(out, c->key_mask->type.element, 2, dim, err));
    for (int64_t b = 0; b < p->batch; b++) {
        for (int64_t k = 0; k < keys; k++)
            (*out)->i[b * keys + k] = !is_padding(p, b, k);
    }
    return XM_OK;
}

static enum xm_status
run_probe(const struct xm_graph *g, struct xm_value *mask, const struct cone *c,
          const struct probe *p, struct xm_tensor **out, struct xm_error *err)
{
    const struct xm_binding bindings[] = {{XM_SYMBOL_BATCH, p->batch},
                                          {XM_SYMBOL_TOKENS, p->tokens},
                                          {XM_SYMBOL_PAST, p->past}};
    struct xm_tensor *key_mask = NULL;
    struct xm_eval e = {.graph = g, .bindings = bindings, .n_bindings = 3};
    const char *name = c->key_mask ? c->key_mask->node->attr.name.name : NULL;
    enum xm_status s = XM_OK;
    if (c->key_mask) {
        s = key_mask_tensor(c, p, &key_mask, err);
        e.input_names = &name;
        e.inputs = (const struct xm_tensor *const *)&key_mask;
        e.n_inputs = 1;
    }
    if (s == XM_OK)
        s = xm_evaluate_value(&e, mask, out, err);
    xm_tensor_destroy(key_mask);
    return s;
}

/* Element i of a mask. 1: the position is seen, 0: hidden, -1: neither, so this is no mask. */
static int
seen(const struct xm_tensor *t, uint64_t i)
{
    if (!t->f)
        return t->i[i] != 0;
    return t->f[i] == 0.0f ? 1 : t->f[i] <= -1e4f ? 0 : -1;
}

static bool
agrees(const struct xm_tensor *t, const struct probe *p, const struct xm_mask_kind *kind)
{
    int64_t keys = p->past + p->tokens;
    if (t->rank != 4 || t->dim[1] != 1 || t->dim[2] != p->tokens || t->dim[3] != keys ||
        (t->dim[0] != p->batch && t->dim[0] != 1))
        return false;
    for (int64_t b = 0; b < t->dim[0]; b++) {
        for (int64_t q = 0; q < p->tokens; q++) {
            for (int64_t k = 0; k < keys; k++) {
                int64_t distance = p->past + q - k;
                bool expected = (!kind->causal || distance >= 0) &&
                                (!kind->window || distance < kind->window) &&
                                !(kind->key_mask && is_padding(p, b, k));
                if (seen(t, (uint64_t)((b * p->tokens + q) * keys + k)) != (int)expected)
                    return false;
            }
        }
    }
    return true;
}

/* ---- candidates -------------------------------------------------------------------- */

enum { MAX_PROBES = 4 + 2 * MAX_CONSTANTS };

static uint32_t
list_probes(const struct cone *c, struct probe *probes)
{
    uint32_t n = 0;
    bool padded = c->key_mask != NULL;
    probes[n++] = (struct probe){padded ? 2 : 1, 3, 4, padded};
    probes[n++] = (struct probe){1, 1, 0, false};
    probes[n++] = (struct probe){1, 5, 0, false};
    probes[n++] = (struct probe){padded ? 3 : 1, 1, 9, padded};
    for (uint32_t i = 0; i < c->n_constants; i++) {
        probes[n++] = (struct probe){1, 3, c->constants[i] - 2, false};
        probes[n++] = (struct probe){1, 2, c->constants[i] + 7, false};
    }
    return n;
}

/* Tries all kinds: causal or not; without a window, or with a window of the size of a constant or
 * one more. */
static bool
find_kind(struct cone *c, struct xm_tensor *const *results, const struct probe *probes,
          uint32_t n, struct xm_mask_kind *kind)
{
    for (int causal = 1; causal >= 0; causal--) {
        for (uint32_t w = 0; w < 1 + 2 * c->n_constants; w++) {
            *kind = (struct xm_mask_kind){
                .known = true,
                .causal = causal,
                .window = w == 0 ? 0 : c->constants[(w - 1) / 2] + (w - 1) % 2,
                .key_mask = c->key_mask};
            uint32_t i = 0;
            while (i < n && agrees(results[i], &probes[i], kind))
                i++;
            if (i == n)
                return true;
        }
    }
    *kind = (struct xm_mask_kind){0};
    return false;
}

enum xm_status
xm_mask_classify(const struct xm_graph *g, struct xm_value *mask,
                 struct xm_mask_kind *out, struct xm_error *err)
{
    struct probe probes[MAX_PROBES];
    struct xm_tensor *results[MAX_PROBES] = {NULL};
    struct cone *c = xm_calloc(1, sizeof(*c));
    *out = (struct xm_mask_kind){0};
    if (!c)
        return xm_no_memory(err, "a mask");
    visit(c, mask);
    enum xm_status s = XM_OK;
    struct xm_error cause = {0};
    if (!c->too_large && !c->other_inputs) {
        uint32_t n = list_probes(c, probes);
        for (uint32_t i = 0; i < n && s == XM_OK; i++)
            s = run_probe(g, mask, c, &probes[i], &results[i], &cause);
        if (s == XM_OK)
            find_kind(c, results, probes, n, out);
    }
    /* a mask that cannot be computed (an input has other sizes) is of unknown kind */
    s = s == XM_NO_MEMORY ? xm_fail(err, s, "%s", cause.text) : XM_OK;
    for (uint32_t i = 0; i < MAX_PROBES; i++)
        xm_tensor_destroy(results[i]);
    xm_free(c);
    return s;
}
