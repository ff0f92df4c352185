/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of a batch that begin with padding, as exported models take texts of different lengths:
 *
 *     attention_mask  0 0 1 1 1        what runs, a stretch of each row one after the other:
 *                     1 1 1 1 1   ──►  [b, c, d | e, f, g, h, i | k]   (1 row of 9 tokens)
 *                     0 0 0 0 1
 *
 * Padding is neither run nor stored: a row's sequence has only the positions behind it, and the
 * number of padding positions. Then the mask hides no stored position, and attention need not read
 * it. Other masks (with holes, or padding on the right) are read by attention.
 */
#include <inttypes.h>
#include <string.h>

#include "plugin/gpu/request_run.h"
#include "transformations/graph/symbols.h"

/* ---- which programs ------------------------------------------------------------------- */

static bool
is_named(const struct xm_port *port, const char *name)
{
    return name && strcmp(port->name, name) == 0;
}

/* Returns the axis `batch` of a port that is followed by an axis `tokens`; the rank: none. */
static uint32_t
row_axis(const struct xm_port *port)
{
    const struct xm_shape *s = &port->type.shape;
    for (uint32_t i = 0; i + 1 < s->rank; i++) {
        if (xm_dim_is_symbol(s->dim[i], XM_SYMBOL_BATCH) &&
            xm_dim_is_symbol(s->dim[i + 1], XM_SYMBOL_TOKENS))
            return i;
    }
    return s->rank;
}

static bool
has_symbol(const struct xm_shape *s, const char *name)
{
    bool has = false;
    for (uint32_t i = 0; i < s->rank; i++)
        has |= xm_dim_has_symbol(s->dim[i], name);
    return has;
}

static bool
can_gather(const struct xm_program *p, const struct xm_port *port)
{
    const struct xm_shape *s = &port->type.shape;
    if (is_named(port, p->beam_idx))
        return xm_dim_is_symbol(s->dim[0], XM_SYMBOL_BATCH);
    if (is_named(port, p->key_mask))
        return xm_dim_is_symbol(s->dim[0], XM_SYMBOL_BATCH) &&
               xm_dim_has_symbol(s->dim[s->rank - 1], XM_SYMBOL_TOKENS);
    return row_axis(port) < s->rank ||
           (!has_symbol(s, XM_SYMBOL_BATCH) && !has_symbol(s, XM_SYMBOL_TOKENS));
}

/* Returns whether a value that a step uses depends on the number of rows (batch), in its shape
 * without an axis of tokens or in the integers that it holds. Inputs are allowed to: the beam index
 * and the key mask, which only attention reads. */
static bool
counts_rows(const struct xm_program_value *v)
{
    bool counts = has_symbol(&v->shape, XM_SYMBOL_BATCH) &&
                  !has_symbol(&v->shape, XM_SYMBOL_TOKENS);
    for (uint32_t i = 0; i < v->n_dims; i++)
        counts |= xm_dim_has_symbol(v->dims[i], XM_SYMBOL_BATCH);
    return counts && v->place != XM_PLACE_INPUT && v->first != UINT32_MAX;
}

/* True for programs that can run tokens of several sequences concatenated, and all attention layers
 * of which read the key mask. */
bool
xm_request_can_pack(const struct xm_program *p)
{
    bool can = p->is_ragged && p->chosen_rows == XM_NO_VALUE && p->key_mask;
    for (uint32_t i = 0; i < p->ports.n_inputs; i++)
        can = can && can_gather(p, &p->ports.inputs[i]);
    for (uint32_t i = 0; i < p->ports.n_outputs; i++)
        can = can && row_axis(&p->ports.outputs[i]) < p->ports.outputs[i].type.shape.rank;
    for (uint32_t i = 0; i < p->n_values; i++)
        can = can && !counts_rows(&p->values[i]);
    for (uint32_t i = 0; i < p->n_steps; i++)
        can = can && (p->steps[i].kind != XM_STEP_ATTENTION ||
                      p->steps[i].operand[XM_ATTENTION_KEY_MASK].value != XM_NO_VALUE);
    return can;
}

/* ---- what a mask hides ----------------------------------------------------------------- */

/* A row of the key mask: `zeros` zeros at its beginning; is_left: only ones come behind them. */
struct mask_row {
    uint64_t zeros;
    bool is_left;
};

static struct mask_row
read_row(const struct xm_host_tensor *mask, uint64_t b)
{
    const uint64_t n = (uint64_t)mask->dim[1], first = b * n;
    struct mask_row row = {0, true};
    while (row.zeros < n && !xm_load_int(mask->element, mask->data, first + row.zeros))
        row.zeros++;
    for (uint64_t i = row.zeros; i < n && row.is_left; i++)
        row.is_left = xm_load_int(mask->element, mask->data, first + i) != 0;
    return row;
}

enum xm_status
xm_request_read_mask(struct xm_request *r, struct xm_error *err)
{
    const struct xm_program *p = r->program;
    const struct xm_host_tensor *mask = xm_request_input_named(r, r->inputs, p->key_mask);
    const uint32_t rows = mask ? r->rows.n : 0;
    const uint64_t past = xm_request_past(r);
    bool has_padding = false;
    r->mask_is_full = true;
    for (uint32_t b = 0; b < rows; b++) {
        const struct mask_row row = read_row(mask, b);
        const struct xm_kv_sequence *s = r->rows.list[b];
        const uint64_t known = xm_kv_sequence_padding(s);
        const bool may_grow = r->can_pack && xm_kv_sequence_past(s) == 0;
        if (row.zeros < known)
            return xm_fail(err, XM_INVALID,
                           "input '%s' unmasks position %" PRIu64 " of row %" PRIu32
                           ", which was padding when it ran and is not in the states",
                           p->key_mask, row.zeros, b);
        r->mask_is_full &= row.is_left && (row.zeros == known || may_grow);
        has_padding |= row.zeros > past;
    }
    for (uint32_t b = 0; b < rows && has_padding && r->mask_is_full; b++) {
        const uint64_t zeros = read_row(mask, b).zeros;
        xm_intake_leave_out(&r->intake, b, zeros > past ? zeros - past : 0);
    }
    return XM_OK;
}

enum xm_status
xm_request_shift_mask(struct xm_request *r, const struct xm_host_tensor *mask,
                      const struct xm_host_tensor **out, struct xm_error *err)
{
    const uint64_t bytes = xm_element_bits(mask->element) / 8;
    const uint64_t row = (uint64_t)mask->dim[1] * bytes;
    bool has_padding = false;
    for (uint32_t b = 0; b < r->rows.n; b++)
        has_padding |= xm_kv_sequence_padding(r->rows.list[b]) > 0;
    *out = mask;
    if (!has_padding)
        return XM_OK;
    void *data = r->mask.data;
    const uint64_t had = r->mask.bytes;
    r->mask = *mask;
    r->mask.data = data;
    r->mask.bytes = had;
    XM_TRY(xm_request_resize(&r->mask, err));
    for (uint32_t b = 0; b < r->rows.n; b++) {
        const uint64_t cut = xm_kv_sequence_padding(r->rows.list[b]) * bytes;
        uint8_t *to = (uint8_t *)r->mask.data + b * row;
        memcpy(to, (const uint8_t *)mask->data + b * row + cut, row - cut);
        memset(to + row - cut, 0, cut);
    }
    *out = &r->mask;
    return XM_OK;
}
