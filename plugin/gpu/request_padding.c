/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of a batch that begin with padding, as exported models take texts of different lengths:
 *
 *     attention_mask  0 0 1 1 1        what runs, a stretch of each row one after the other:
 *                     1 1 1 1 1   ──►  [b, c, d | e, f, g, h, i | k]   (1 row of 9 tokens)
 *                     0 0 0 0 1
 *
 * Padding is neither run nor stored: a row's sequence holds what comes behind it, and the row
 * counts it. So a mask may hide nothing that the sequences hold, and attention need not read it.
 * Other masks (holes, padding on the right) go through attention.
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

/* The axis of `batch` that one of `tokens` follows; the rank where there is none. */
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
    if (is_named(port, p->key_mask) || is_named(port, p->beam_idx))
        return xm_dim_is_symbol(s->dim[0], XM_SYMBOL_BATCH);
    return row_axis(port) < s->rank ||
           (!has_symbol(s, XM_SYMBOL_BATCH) && !has_symbol(s, XM_SYMBOL_TOKENS));
}

/* Whether a value, or the integers that it holds, says how many rows there are, and not of tokens.
 * Beam index and key mask, which only attention reads, do. */
static bool
counts_rows(const struct xm_program_value *v)
{
    bool counts = has_symbol(&v->shape, XM_SYMBOL_BATCH) &&
                  !has_symbol(&v->shape, XM_SYMBOL_TOKENS);
    for (uint32_t i = 0; i < v->n_dims; i++)
        counts |= xm_dim_has_symbol(v->dims[i], XM_SYMBOL_BATCH);
    return counts && v->place != XM_PLACE_INPUT && v->first != UINT32_MAX;
}

/* Where rows may be mixed as those of a batch of sequences, and each layer sees by the mask. */
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

/* So many zeros, and whether nothing but ones comes behind them. */
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

/* The row that row b continues; NULL: it is new. */
static const struct xm_kv_sequence *
row_before(const struct xm_request *r, const struct xm_host_tensor *beams, uint64_t b)
{
    const int64_t from = beams ? xm_load_int(beams->element, beams->data, b) : (int64_t)b;
    const bool is_there =
        from >= 0 && from < (int64_t)r->rows.n && xm_request_past(r) > 0;
    return is_there ? r->rows.list[from] : NULL;
}

static enum xm_status
room_for_rows(struct xm_request *r, uint64_t rows, struct xm_error *err)
{
    if (rows <= r->fresh_room)
        return XM_OK;
    uint64_t *list = xm_realloc(r->fresh, rows * sizeof(*list));
    if (!list)
        return xm_no_memory(err, "%" PRIu64 " rows", rows);
    r->fresh = list;
    r->fresh_room = rows;
    return XM_OK;
}

enum xm_status
xm_request_read_mask(struct xm_request *r, struct xm_error *err)
{
    const struct xm_program *p = r->program;
    const struct xm_host_tensor *mask = xm_request_input_named(r, r->inputs, p->key_mask);
    const struct xm_host_tensor *beams =
        xm_request_input_named(r, r->inputs, p->beam_idx);
    const uint64_t rows = mask ? (uint64_t)mask->dim[0] : 0;
    const uint64_t keys = mask ? (uint64_t)mask->dim[1] : 0, past = xm_request_past(r);
    bool has_padding = false;
    r->mask_is_full = true;
    r->is_packed = false;
    XM_TRY(room_for_rows(r, rows, err));
    for (uint64_t b = 0; b < rows; b++) {
        const struct mask_row row = read_row(mask, b);
        const struct xm_kv_sequence *s = row_before(r, beams, b);
        const uint64_t known = s ? xm_kv_sequence_padding(s) : 0;
        const bool may_grow = r->can_pack && (!s || xm_kv_sequence_past(s) == 0);
        if (row.zeros < known)
            return xm_fail(err, XM_INVALID,
                           "input '%s' shows position %" PRIu64 " of row %" PRIu64
                           ", which was padding when it ran and is not in the states",
                           p->key_mask, row.zeros, b);
        r->mask_is_full &= row.is_left && (row.zeros == known || may_grow);
        r->fresh[b] = keys - (row.zeros > past ? row.zeros : past);
        has_padding |= row.zeros > past;
    }
    r->is_packed = has_padding && r->mask_is_full;
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

/* ---- a run without padding --------------------------------------------------------------- */

/* Tokens [token, token + n) of a row. */
struct stretch {
    uint64_t row, token, n;
};

/* A run goes in steps of a chunk's rows at most. */
struct pack {
    uint64_t batch, tokens; /* with padding */
    uint64_t row, token;    /* that come next */
    struct stretch *list;   /* of the step, one a sequence */
    struct xm_kv_sequence **sequences;
    uint32_t *counts;
    uint32_t n;
    uint64_t rows;
};

/* The next step; false: all has run. */
static bool
choose_step(const struct xm_request *r, struct pack *k)
{
    const uint64_t most = r->program->config.ubatch;
    k->n = 0;
    k->rows = 0;
    while (k->row < k->batch && k->rows < most) {
        const uint64_t padding = k->tokens - r->fresh[k->row];
        k->token = k->token < padding ? padding : k->token;
        const uint64_t left = k->tokens - k->token, room = most - k->rows;
        const uint64_t n = left < room ? left : room;
        if (n) {
            k->list[k->n] = (struct stretch){k->row, k->token, n};
            k->sequences[k->n] = r->rows.list[k->row];
            k->counts[k->n++] = (uint32_t)n;
            k->rows += n;
        }
        k->token += n;
        if (n == left) {
            k->row++;
            k->token = 0;
        }
    }
    return k->n > 0;
}

/* Between the rows of a step and their places in the whole tensor, whose axis `axis` is the
 * batch. */
static void
move_rows(const struct pack *k, const struct xm_host_tensor *part,
          const struct xm_host_tensor *whole, uint32_t axis, bool to_part)
{
    uint64_t inner = xm_element_bits(whole->element) / 8, outer = 1, at = 0;
    for (uint32_t i = axis + 2; i < whole->rank; i++)
        inner *= (uint64_t)whole->dim[i];
    for (uint32_t i = 0; i < axis; i++)
        outer *= (uint64_t)whole->dim[i];
    for (uint64_t o = 0; o < outer; o++) {
        for (uint32_t i = 0; i < k->n; i++) {
            const struct stretch *s = &k->list[i];
            uint8_t *p = (uint8_t *)part->data + at * inner;
            uint8_t *w = (uint8_t *)whole->data +
                         ((o * k->batch + s->row) * k->tokens + s->token) * inner;
            memcpy(to_part ? p : w, to_part ? w : p, s->n * inner);
            at += s->n;
        }
    }
}

/* Input i of a step: its rows, a mask of ones, sequence 0, or what it is. */
static enum xm_status
gather_input(struct xm_request *r, const struct pack *k, uint32_t i, struct xm_error *err)
{
    const struct xm_port *port = &r->program->ports.inputs[i];
    const struct xm_host_tensor *whole = &r->inputs[i];
    const uint32_t axis = row_axis(port);
    const bool is_mask = is_named(port, r->program->key_mask);
    struct xm_host_tensor *part = &r->chunk[i], *own = &r->cut[i];
    *part = *whole;
    if (axis == whole->rank && !is_mask && !is_named(port, r->program->beam_idx))
        return XM_OK;
    part->dim[axis < whole->rank ? axis : 0] = 1;
    if (is_mask || axis < whole->rank)
        part->dim[is_mask ? 1 : axis + 1] = (int64_t)k->rows;
    part->data = own->data;
    part->bytes = own->bytes;
    enum xm_status s = xm_request_resize(part, err);
    own->data = part->data;
    own->bytes = part->bytes;
    XM_TRY(s);
    if (axis < whole->rank)
        move_rows(k, part, whole, axis, true);
    for (uint64_t e = 0; axis == whole->rank && e < (is_mask ? k->rows : 1); e++)
        xm_store_int(part->element, part->data, e, is_mask);
    return XM_OK;
}

static enum xm_status
gather_inputs(struct xm_request *r, const struct pack *k, struct xm_error *err)
{
    const struct xm_ports *ports = &r->program->ports;
    for (uint32_t i = 0; i < ports->n_inputs; i++)
        XM_TRY(gather_input(r, k, i, err));
    r->bindings.n = 0;
    /* positions before the run are no operand of a program whose rows may be mixed */
    XM_TRY(xm_bindings_set(&r->bindings, XM_SYMBOL_PAST, 0, err));
    return xm_bindings_from_ports(&r->bindings, ports->inputs, r->chunk, ports->n_inputs,
                                  err);
}

/* Gives each result the whole shape, which the bindings still have, and sets it to zeros: those of
 * padding stay. */
static enum xm_status
clear_results(struct xm_request *r, struct xm_error *err)
{
    for (uint32_t i = 0; i < r->program->ports.n_outputs; i++) {
        struct xm_host_tensor *t = &r->results[i].tensor;
        xm_request_describe_result(r, i);
        XM_TRY(xm_request_resize(t, err));
        memset(t->data, 0, t->bytes);
    }
    return XM_OK;
}

static enum xm_status
scatter_result(struct xm_request *r, const struct pack *k, uint32_t i,
               struct xm_error *err)
{
    struct xm_operand o;
    struct xm_host_tensor part = r->results[i].tensor;
    xm_request_operand(r, r->program->output_values[i], &o);
    part.data = NULL;
    memcpy(part.dim, o.dim, sizeof(part.dim));
    XM_TRY(xm_request_resize(&part, err));
    enum xm_status s = xm_request_read(r, &o, part.data, err);
    if (s == XM_OK)
        move_rows(k, &part, &r->results[i].tensor,
                  row_axis(&r->program->ports.outputs[i]), false);
    xm_free(part.data);
    return s;
}

/* Waits for the step. */
static enum xm_status
run_step(struct xm_request *r, const struct pack *k, struct xm_error *err)
{
    const struct xm_request_rows rows = {k->sequences, k->counts, k->n, UINT64_MAX};
    const bool is_read = !xm_engine_only_counts(r->program->engine);
    XM_TRY(gather_inputs(r, k, err));
    XM_TRY(xm_request_run_rows(r, r->chunk, &rows, err));
    for (uint32_t i = 0; i < r->program->ports.n_outputs && is_read; i++)
        XM_TRY(scatter_result(r, k, i, err));
    XM_TRY(xm_queue_finish(r->queue, err));
    for (uint32_t i = 0; i < k->n; i++)
        xm_kv_sequence_commit(k->sequences[i], NULL);
    return XM_OK;
}

/* Counts the rows' padding. What goes in several steps is announced: not a slab for some of its
 * pages and a larger one for the next. */
static void
begin_rows(struct xm_request *r, const struct pack *k)
{
    uint64_t all = 0;
    for (uint32_t b = 0; b < r->rows.n; b++) {
        struct xm_kv_sequence *s = r->rows.list[b];
        const uint64_t padding = k->tokens - r->fresh[b];
        xm_kv_sequence_set_padding(s, xm_kv_sequence_padding(s) + padding);
        all += r->fresh[b];
    }
    if (all > r->program->config.ubatch)
        xm_kv_pool_expect_each(r->program->kv_pool, r->fresh, r->rows.n);
}

static enum xm_status
run_steps(struct xm_request *r, struct pack *k, struct xm_error *err)
{
    XM_TRY(clear_results(r, err));
    begin_rows(r, k);
    while (choose_step(r, k))
        XM_TRY(run_step(r, k, err));
    for (uint32_t i = 0; i < r->program->ports.n_outputs; i++)
        r->results[i].state = XM_RESULT_READ;
    return XM_OK;
}

enum xm_status
xm_request_run_packed(struct xm_request *r, struct xm_error *err)
{
    const size_t n = r->rows.n;
    int64_t tokens = 0;
    xm_bindings_find(&r->bindings, XM_SYMBOL_TOKENS, &tokens);
    struct pack k = {.batch = n,
                     .tokens = (uint64_t)tokens,
                     .list = xm_calloc(n, sizeof(*k.list)),
                     .sequences = xm_calloc(n, sizeof(struct xm_kv_sequence *)),
                     .counts = xm_calloc(n, sizeof(*k.counts))};
    enum xm_status s = k.list && k.sequences && k.counts
                           ? run_steps(r, &k, err)
                           : xm_no_memory(err, "%zu rows", n);
    xm_free(k.list);
    xm_free(k.sequences);
    xm_free(k.counts);
    return s;
}
