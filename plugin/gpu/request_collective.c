/* SPDX-License-Identifier: Apache-2.0
 *
 * What ranks exchange: the operand is read to the host, and the result is written back. Sums are of
 * f32, whatever float the device keeps the summands in.
 */
#include "plugin/gpu/request_run.h"
#include "runtime/collective.h"

/* The operand's bytes, packed. */
static enum xm_status
read_bytes(struct xm_request *r, const struct xm_operand *o, void *out,
           struct xm_error *err)
{
    return xm_operand_elements(o) ? xm_request_read(r, o, out, err) : XM_OK;
}

static enum xm_status
sum_up(struct xm_request *r, struct xm_collective *c, const struct xm_operand *x,
       const struct xm_operand *y, uint8_t *mine, uint8_t *whole, struct xm_error *err)
{
    const uint64_t n = xm_operand_elements(y);
    float *summands = (float *)mine, *sums = (float *)whole;
    XM_TRY(read_bytes(r, x, whole, err));
    for (uint64_t i = 0; i < n; i++)
        summands[i] = xm_load_float(x->element, whole, i);
    XM_TRY(xm_collective_sum(c, summands, sums, n, err));
    for (uint64_t i = 0; i < n && y->element != XM_F32;
         i++) /* narrower, from the front */
        xm_store_float(y->element, whole, i, sums[i]);
    return XM_OK;
}

static enum xm_status
join(struct xm_request *r, const struct xm_node *node, const struct xm_operand *x,
     uint8_t *mine, uint8_t *whole, uint64_t bytes, struct xm_error *err)
{
    uint64_t outer = 1, n = 0;
    for (int64_t d = 0; d < node->attr.collective.axis; d++)
        outer *= (uint64_t)x->dim[d];
    if (!xm_element_bytes(x->element, xm_operand_elements(x), &n))
        return xm_fail(err, XM_INVALID, "an operand without a size");
    XM_TRY(read_bytes(r, x, mine, err));
    return xm_collective_join(node->attr.collective.of, (struct xm_bytes){mine, n}, outer,
                              whole, bytes, err);
}

enum xm_status
xm_request_run_collective(struct xm_request *r, const struct xm_step *s,
                          struct xm_error *err)
{
    struct xm_operand x, y;
    uint64_t bytes = 0, room = 0;
    if (!s->node->attr.collective.of) /* in a file that somebody has made */
        return xm_fail(err, XM_UNSUPPORTED, "there are no ranks to exchange it with");
    xm_request_operand(r, s->in[0], &x);
    xm_request_operand(r, s->out[0], &y);
    if (!xm_element_bytes(y.element, xm_operand_elements(&y), &bytes) ||
        !xm_mul_size(xm_operand_elements(&y), sizeof(float), &room))
        return xm_fail(err, XM_INVALID, "an operand without a size");
    uint8_t *mine = xm_malloc((size_t)room), *whole = xm_malloc((size_t)room);
    enum xm_status status = mine && whole ? XM_OK : xm_no_memory(err, "an exchange");
    if (status == XM_OK && s->node->op == XM_OP_ALL_REDUCE)
        status = sum_up(r, s->node->attr.collective.of, &x, &y, mine, whole, err);
    else if (status == XM_OK)
        status = join(r, s->node, &x, mine, whole, bytes, err);
    if (status == XM_OK)
        status = xm_queue_write(r->queue, y.buffer, 0, whole, bytes, err);
    xm_free(mine);
    xm_free(whole);
    return status;
}
