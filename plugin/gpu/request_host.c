/* SPDX-License-Identifier: Apache-2.0
 *
 * Host steps: the operands are read from the device, the host reference evaluates the step's nodes
 * one after the other, and the results are written back. The sizes of tensors in between need not
 * be known before.
 */
#include "plugin/gpu/request_run.h"

/* The tensor of a value of the graph. */
struct known {
    const struct xm_value *value;
    struct xm_tensor *tensor; /* owned */
};

struct host_run {
    struct xm_request *r;
    const struct xm_step *step;
    struct known *known;
    uint32_t n;
    size_t capacity;
    struct xm_error *err;
};

static struct xm_tensor *
look_up(const struct host_run *h, const struct xm_value *v)
{
    for (uint32_t i = h->n; i-- > 0;) {
        if (h->known[i].value == v)
            return h->known[i].tensor;
    }
    return NULL;
}

/* Adds the tensor of v to the list, which owns t from now on, also on failure. */
static enum xm_status
remember(struct host_run *h, const struct xm_value *v, struct xm_tensor *t)
{
    struct known *list = xm_grow(h->known, &h->capacity, h->n + 1, sizeof(*list));
    if (!list) {
        xm_tensor_destroy(t);
        return xm_no_memory(h->err, "a host step's tensors");
    }
    h->known = list;
    h->known[h->n++] = (struct known){v, t};
    return XM_OK;
}

/* ---- the device's side ---- */

/* Reads a value from the device. *out has the element type of the graph's value, even if the device
 * stores another float type. */
static enum xm_status
read_tensor(struct xm_request *r, uint32_t value, enum xm_element element,
            struct xm_tensor **out, struct xm_error *err)
{
    struct xm_operand o;
    xm_request_operand(r, value, &o);
    uint64_t bytes = 0;
    if (!xm_element_bytes(o.element, xm_operand_elements(&o), &bytes))
        return xm_fail(err, XM_INVALID, "an operand without a size");
    void *packed = xm_malloc((size_t)bytes);
    if (!packed)
        return xm_no_memory(err, "an operand on the host");
    enum xm_status s = xm_request_read(r, &o, packed, err);
    if (s == XM_OK)
        s = xm_tensor_from_bytes(out, o.element, o.rank, o.dim, packed, err);
    if (s == XM_OK && (*out)->f) /* the reference checks that types are the graph's */
        (*out)->element = element;
    xm_free(packed);
    return s;
}

static enum xm_status
write_tensor(struct xm_request *r, uint32_t value, const struct xm_tensor *t,
             struct xm_error *err)
{
    struct xm_operand o;
    xm_request_operand(r, value, &o);
    uint64_t n = xm_operand_elements(&o), bytes = 0;
    if (n != t->n || !xm_element_bytes(o.element, n, &bytes))
        return xm_fail(err, XM_INVALID, "the host computed %llu elements, expected %llu",
                       (unsigned long long)t->n, (unsigned long long)n);
    void *packed = xm_malloc((size_t)bytes);
    if (!packed)
        return xm_no_memory(err, "a result on the host");
    for (uint64_t i = 0; i < n; i++) {
        if (t->f)
            xm_store_float(o.element, packed, i, t->f[i]);
        else
            xm_store_int(o.element, packed, i, t->i[i]);
    }
    enum xm_status s =
        bytes ? xm_queue_write(r->queue, o.buffer, 0, packed, bytes, err) : XM_OK;
    xm_free(packed);
    return s;
}

/* ---- the reference's side ---- */

static enum xm_status
evaluate(struct host_run *h, const struct xm_node *n, struct xm_tensor *const *in)
{
    struct xm_request *r = h->r;
    struct xm_tensor **out = xm_calloc(n->n_out + 1, sizeof(struct xm_tensor *));
    if (!out)
        return xm_no_memory(h->err, "a host step's results");
    enum xm_status s =
        xm_evaluate_node(n, (const struct xm_tensor *const *)in, out, r->states,
                         r->bindings.list, r->bindings.n, h->err);
    for (uint32_t i = 0; i < n->n_out && s == XM_OK; i++) {
        s = remember(h, &n->out[i], out[i]);
        out[i] = NULL;
    }
    for (uint32_t i = 0; i < n->n_out; i++)
        xm_tensor_destroy(out[i]);
    xm_free(out);
    return s;
}

/* Sets *out to the tensor of operand i of n; NULL: it is absent, or a weight that the reference of
 * n reads by itself. Constants are evaluated on first use. */
static enum xm_status
operand(struct host_run *h, const struct xm_node *n, uint32_t i, struct xm_tensor **out)
{
    const struct xm_value *v = xm_in(n, i);
    *out = look_up(h, v);
    if (*out || xm_is_none(v) ||
        (v->node->op == XM_OP_WEIGHT && xm_eval_takes_weight(n->op, i)))
        return XM_OK;
    XM_TRY(evaluate(h, v->node, NULL));
    *out = look_up(h, v);
    return XM_OK;
}

static enum xm_status
run_node(struct host_run *h, const struct xm_node *n)
{
    struct xm_tensor **in = xm_calloc(n->n_in + 1, sizeof(struct xm_tensor *));
    enum xm_status s = in ? XM_OK : xm_no_memory(h->err, "a host step");
    for (uint32_t i = 0; i < n->n_in && s == XM_OK; i++)
        s = operand(h, n, i, &in[i]);
    if (s == XM_OK)
        s = evaluate(h, n, in);
    xm_free(in);
    return s;
}

static enum xm_status
run_region(struct host_run *h)
{
    const struct xm_step *s = h->step;
    const struct xm_region *region = s->region;
    for (uint32_t i = 0; i < s->n_in; i++) {
        const struct xm_value *v = region->values[i];
        struct xm_tensor *t = NULL;
        XM_TRY(read_tensor(h->r, s->in[i], v->type.element, &t, h->err));
        XM_TRY(remember(h, v, t));
    }
    for (uint32_t i = 0; i < region->n_nodes; i++)
        XM_TRY(run_node(h, region->nodes[i]));
    for (uint32_t i = 0; i < s->n_out; i++)
        XM_TRY(write_tensor(h->r, s->out[i], look_up(h, region->values[s->n_in + i]),
                            h->err));
    return XM_OK;
}

enum xm_status
xm_request_run_host(struct xm_request *r, const struct xm_step *s, struct xm_error *err)
{
    struct host_run h = {.r = r, .step = s, .err = err};
    enum xm_status status = run_region(&h);
    for (uint32_t i = 0; i < h.n; i++)
        xm_tensor_destroy(h.known[i].tensor);
    xm_free(h.known);
    return status;
}
