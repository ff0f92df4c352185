/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps that exchange values with other ranks. The operand is read to the host, which is the only
 * wait of an exchange. The result is sent to the device without a wait.
 *
 *     queue    … ─► x ──► read │                send ─► y ──► …
 *     host                     └─► meet ─► sum ──┘
 *
 * Operand and result lie in host memory of the request, a "place". Other ranks may read the place
 * until they reach the next exchange, and the queue until that exchange has read its operand. So
 * there are two places, used in turn.
 *
 * SEND and RECEIVE pass a value from layer to layer, and each does only half of this: SEND only
 * reads the operand, RECEIVE only sends the result to the device. After several RECEIVE steps in a
 * row a place may still be read by the queue: then the request waits before it uses it again.
 */
#include <inttypes.h>

#include "plugin/gpu/request_run.h"
#include "runtime/collective.h"
#include "runtime/util/memory.h"

enum { LINE = 64 }; /* bytes: alignment of the result behind the operand in a place */

/* Sets *out to the place for this exchange, at least `bytes` bytes with undefined contents. */
static enum xm_status
take_place(struct xm_request *r, uint64_t bytes, uint8_t **out, struct xm_error *err)
{
    struct xm_exchange_place *p = &r->exchanges[r->n_exchanges++ % 2];
    if (p->is_sent)
        XM_TRY(xm_queue_finish(r->queue, err));
    p->is_sent = false;
    if (p->room < bytes) {
        xm_free(p->bytes);
        p->bytes = bytes <= SIZE_MAX ? xm_malloc((size_t)bytes) : NULL;
        p->room = p->bytes ? bytes : 0;
        if (!p->bytes)
            return xm_no_memory(err, "an exchange of %" PRIu64 " bytes", bytes);
    }
    *out = p->bytes;
    return XM_OK;
}

static enum xm_status
exchange(const struct xm_node *n, const struct xm_operand *x, uint8_t *mine,
         const struct xm_operand *y, uint8_t *whole, uint64_t bytes, struct xm_error *err)
{
    struct xm_collective *c = n->attr.collective.of;
    uint64_t own = 0;
    if (n->op == XM_OP_ALL_REDUCE)
        return xm_collective_sum_as(c, n->attr.collective.element, x->element, mine,
                                    y->element, whole, xm_operand_elements(y), err);
    (void)xm_element_bytes(x->element, xm_operand_elements(x), &own);
    uint64_t outer = 1;
    for (int64_t d = 0; d < n->attr.collective.axis; d++)
        outer *= (uint64_t)x->dim[d];
    return xm_collective_join(c, (struct xm_bytes){mine, own}, outer, whole, bytes, err);
}

/* Reads x to the place and waits for the queue, so that all earlier sends have ended. */
static enum xm_status
read_operand(struct xm_request *r, const struct xm_operand *x, uint8_t *place,
             struct xm_error *err)
{
    XM_TRY(xm_request_read(r, x, place, err));
    r->exchanges[0].is_sent = r->exchanges[1].is_sent = false;
    return XM_OK;
}

static enum xm_status
send_result(struct xm_request *r, const struct xm_operand *y, const uint8_t *whole,
            uint64_t bytes, struct xm_error *err)
{
    r->exchanges[(r->n_exchanges - 1) % 2].is_sent = true;
    return xm_queue_send(r->queue, y->buffer, 0, whole, bytes, err);
}

static enum xm_status
pass_on(struct xm_request *r, const struct xm_step *s, struct xm_error *err)
{
    const bool sends = s->node->op == XM_OP_SEND;
    struct xm_collective *c = s->node->attr.collective.of;
    const uint32_t peer = (uint32_t)s->node->attr.collective.peer;
    struct xm_operand x;
    uint64_t bytes = 0;
    uint8_t *place = NULL;
    xm_request_operand(r, sends ? s->in[0] : s->out[0], &x);
    if (!xm_element_bytes(x.element, xm_operand_elements(&x), &bytes))
        return xm_fail(err, XM_INVALID, "an operand without a size");
    if (bytes == 0)
        return XM_OK;
    XM_TRY(take_place(r, bytes, &place, err));
    if (!sends) {
        XM_TRY(xm_collective_receive(c, peer, place, bytes, err));
        return send_result(r, &x, place, bytes, err);
    }
    XM_TRY(read_operand(r, &x, place, err));
    return xm_collective_send(c, peer, (struct xm_bytes){place, bytes}, err);
}

enum xm_status
xm_request_run_collective(struct xm_request *r, const struct xm_step *s,
                          struct xm_error *err)
{
    struct xm_operand x, y;
    uint64_t x_bytes = 0, y_bytes = 0, both = 0;
    uint8_t *place = NULL;
    if (!s->node->attr.collective.of) /* only a hand-made graph file has such a node */
        return xm_fail(
            err, XM_UNSUPPORTED,
            "the value must be exchanged between ranks, but there is only one");
    if (s->node->op == XM_OP_SEND || s->node->op == XM_OP_RECEIVE)
        return pass_on(r, s, err);
    xm_request_operand(r, s->in[0], &x);
    xm_request_operand(r, s->out[0], &y);
    if (!xm_element_bytes(x.element, xm_operand_elements(&x), &x_bytes) ||
        !xm_element_bytes(y.element, xm_operand_elements(&y), &y_bytes) ||
        !xm_add_size(xm_align_up(x_bytes, LINE), y_bytes, &both))
        return xm_fail(err, XM_INVALID, "an operand without a size");
    XM_TRY(take_place(r, both, &place, err));
    uint8_t *whole = place + (both - y_bytes);
    if (x_bytes)
        XM_TRY(read_operand(r, &x, place, err));
    XM_TRY(exchange(s->node, &x, place, &y, whole, y_bytes, err));
    return send_result(r, &y, whole, y_bytes, err);
}
