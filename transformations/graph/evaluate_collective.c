/* SPDX-License-Identifier: Apache-2.0
 *
 * References of the ops by which the ranks of a split graph exchange values. They wait for other
 * ranks. */
#include <string.h>

#include "runtime/util/memory.h"
#include "transformations/graph/evaluate_ops.h"

static enum xm_status
ranks_of(const struct xm_eval_call *c, struct xm_collective **out)
{
    *out = c->node->attr.collective.of;
    return *out ? XM_OK
                : xm_fail(
                      c->err, XM_UNSUPPORTED,
                      "the value must be exchanged between ranks, but there is only one");
}

enum xm_status
xm_eval_all_reduce(struct xm_eval_call *c)
{
    struct xm_collective *of;
    XM_TRY(ranks_of(c, &of));
    const uint64_t n = c->out[0]->n;
    /* a copy, because the message may be rounded in place */
    float *x = xm_malloc((size_t)n * sizeof(*x) + 1);
    if (!x)
        return xm_no_memory(c->err, "an exchange");
    memcpy(x, c->in[0]->f, (size_t)n * sizeof(*x));
    enum xm_status s = xm_collective_sum_as(of, c->node->attr.collective.element, XM_F32,
                                            x, XM_F32, c->out[0]->f, n, c->err);
    if (s == XM_OK)
        s = xm_collective_wait(of, c->err); /* all ranks have read x */
    xm_free(x);
    return s;
}

enum xm_status
xm_eval_all_gather(struct xm_eval_call *c)
{
    struct xm_collective *of;
    const struct xm_tensor *x = c->in[0];
    struct xm_tensor *y = c->out[0];
    XM_TRY(ranks_of(c, &of));
    const uint32_t axis = (uint32_t)c->node->attr.collective.axis;
    const struct xm_bytes part = {xm_tensor_raw(x), x->n * xm_tensor_width(x)};
    XM_TRY(xm_collective_join(of, part, xm_tensor_size(x, 0, axis), xm_tensor_raw(y),
                              y->n * xm_tensor_width(y), c->err));
    return xm_collective_wait(of, c->err);
}

enum xm_status
xm_eval_send(struct xm_eval_call *c)
{
    struct xm_collective *of;
    const struct xm_tensor *x = c->in[0];
    XM_TRY(ranks_of(c, &of));
    const struct xm_bytes mine = {xm_tensor_raw(x), x->n * xm_tensor_width(x)};
    c->out[0]->f[0] = 0.0f;
    return xm_collective_send(of, (uint32_t)c->node->attr.collective.peer, mine, c->err);
}

enum xm_status
xm_eval_receive(struct xm_eval_call *c)
{
    struct xm_collective *of;
    struct xm_tensor *y = c->out[0];
    XM_TRY(ranks_of(c, &of));
    return xm_collective_receive(of, (uint32_t)c->node->attr.collective.peer,
                                 xm_tensor_raw(y), y->n * xm_tensor_width(y), c->err);
}
