/* SPDX-License-Identifier: Apache-2.0
 *
 * Experts through oneDNN's GPU engine; see onednn_experts.h.
 *
 * moe_combine multiplies by the routing weights, in f32: as a post-op of oneDNN they would have to
 * be gathered first.
 */
#include "primitives/moe/onednn_experts.h"

#include <inttypes.h>

#include "primitives/onednn/onednn_weight.h"
#include "runtime/dry_run.h"
#include "runtime/util/log.h"
#include "runtime/util/memory.h"

/* rows of a tile: an expert's rows are whole tiles */
enum { TILE = 16, LEAST_POWER = 4 };
/* power of the piece for which oneDNN is asked */
enum { PROBE_POWER = 6 };

enum product { GATE, UP, DOWN, N_PRODUCTS };

struct xm_onednn_experts {
    struct xm_engine *engine; /* borrowed from the primitive, as are the weights */
    struct xm_onednn *onednn; /* referenced */
    const struct xm_device_weight *weight[N_PRODUCTS];
    uint64_t experts, hidden, inter; /* E, H, I */
    /* matmuls of all experts at once; NULL: `most` and `piece` are used instead */
    struct xm_onednn_matmul *whole[N_PRODUCTS];
    uint32_t most; /* power of the largest piece */
    struct xm_onednn_matmul *piece[N_PRODUCTS][XM_ONEDNN_PIECES];
    /* ends_bytes come first in XM_MANY_SCRATCHPAD */
    uint64_t scratchpad_bytes, ends_bytes;
    uint64_t whole_rows; /* most rows of a call for all experts */
};

/* ---- what can be taken -------------------------------------------------------------- */

static const struct xm_device_weight *
weight_of(const struct xm_moe_desc *d, enum product product)
{
    const struct xm_expert_rows *e = &d->experts;
    return product == GATE ? e->gate : product == UP ? e->up : e->down;
}

/* Returns the problem of one product of `rows` rows of one expert, or (whole) of all experts. */
static struct xm_onednn_problem
problem_of(const struct xm_moe_desc *d, enum product product, uint64_t rows, bool whole)
{
    struct xm_onednn_problem p = xm_onednn_weight_problem(&weight_of(d, product)->host);
    p.m = rows;
    p.groups = whole ? d->experts.down->host.experts : 0;
    p.x = XM_F16;
    p.y = product == DOWN ? XM_F32 : XM_F16;
    p.times = product == UP;
    p.activated = product == GATE;
    if (p.activated) {
        p.activation = d->attr.activation;
        p.beta = d->attr.beta;
    }
    return p;
}

/* Returns the most rows of a chunk: the last tile of every expert may be nearly empty. */
static uint64_t
rows_of_chunk(struct xm_engine *engine, const struct xm_moe_desc *d)
{
    uint64_t slots = xm_chunk_tokens(engine, d->chunk) * (uint64_t)d->attr.routing.top_k;
    return xm_align_up(slots, TILE) + TILE * d->experts.down->host.experts;
}

static const char *
form_refusal(const struct xm_device_info *device, const struct xm_moe_desc *d)
{
    const struct xm_expert_rows *e = &d->experts;
    if (d->attr.limit > 0 || d->attr.up_add != 0 || !e->up || e->bias_gate ||
        e->bias_up || e->bias_down || e->factor)
        return "oneDNN is used only for experts of three matmuls without clamps, biases "
               "and multipliers";
    if (d->src != XM_F16)
        return "oneDNN's GPU engine is used only for f16 activations";
    uint64_t hidden = d->experts.down->host.rows, inter = d->experts.down->host.cols;
    if (TILE * 2 * hidden % device->base_align || TILE * 2 * inter % device->base_align)
        return "the rows of the activations are not aligned for oneDNN";
    const char *why = xm_onednn_weight_refuses(device, &d->experts.gate->host);
    return why ? why : xm_onednn_weight_refuses(device, &d->experts.down->host);
}

static const char *
products_refusal(struct xm_onednn *o, const struct xm_moe_desc *d, uint64_t rows,
                 bool whole)
{
    const char *why = NULL;
    for (int p = 0; p < N_PRODUCTS && !why; p++) {
        const struct xm_onednn_problem problem =
            problem_of(d, (enum product)p, rows, whole);
        why = xm_onednn_declines(o, &problem);
    }
    return why;
}

static const char *
whole_refusal(struct xm_onednn *o, struct xm_engine *engine, const struct xm_moe_desc *d)
{
    return d->experts.down->host.experts > 1
               ? products_refusal(o, d, rows_of_chunk(engine, d), true)
               : "there is only one expert";
}

const char *
xm_onednn_experts_refuse(struct xm_engine *engine, const struct xm_moe_desc *desc)
{
    struct xm_onednn *o = xm_onednn_of(engine);
    if (!o) {
        const char *why = xm_onednn_refuses(engine);
        return why ? why : "oneDNN's GPU engine is not open: see GPU_USE_ONEDNN";
    }
    const char *why = form_refusal(xm_engine_info(engine), desc);
    if (!why && whole_refusal(o, engine, desc))
        why = products_refusal(o, desc, xm_onednn_piece_rows(PROBE_POWER), false);
    xm_onednn_unref(o);
    return why;
}

/* ---- creation ----------------------------------------------------------------------- */

static enum xm_status
build(struct xm_onednn_experts *o, const struct xm_onednn_problem *p,
      struct xm_onednn_matmul **out, struct xm_error *err)
{
    XM_TRY(xm_onednn_matmul_get(o->onednn, p, out, err));
    uint64_t bytes = xm_onednn_matmul_scratch(*out);
    if (bytes > o->scratchpad_bytes)
        o->scratchpad_bytes = bytes;
    return XM_OK;
}

static enum xm_status
build_whole(struct xm_onednn_experts *o, const struct xm_moe_desc *d,
            struct xm_error *err)
{
    uint64_t rows = rows_of_chunk(o->engine, d);
    o->whole_rows = rows;
    o->ends_bytes =
        xm_align_up(o->experts * sizeof(int32_t), xm_engine_info(o->engine)->base_align);
    for (int p = 0; p < N_PRODUCTS; p++) {
        const struct xm_onednn_problem problem =
            problem_of(d, (enum product)p, rows, true);
        XM_TRY(build(o, &problem, &o->whole[p], err));
    }
    return XM_OK;
}

static enum xm_status
build_pieces(struct xm_onednn_experts *o, const struct xm_moe_desc *d,
             struct xm_error *err)
{
    o->most = xm_onednn_largest_piece(xm_chunk_tokens(o->engine, d->chunk), LEAST_POWER);
    for (int p = 0; p < N_PRODUCTS; p++) {
        for (uint32_t i = LEAST_POWER; i <= o->most; i++) {
            const struct xm_onednn_problem problem =
                problem_of(d, (enum product)p, xm_onednn_piece_rows(i), false);
            XM_TRY(build(o, &problem, &o->piece[p][i], err));
        }
    }
    return XM_OK;
}

static enum xm_status
init(struct xm_onednn_experts *o, const struct xm_moe_desc *d, struct xm_error *err)
{
    o->onednn = xm_onednn_of(o->engine);
    if (!o->onednn)
        return xm_fail(err, XM_UNSUPPORTED, "oneDNN's GPU engine is not open");
    o->experts = d->experts.down->host.experts;
    o->hidden = d->experts.down->host.rows;
    o->inter = d->experts.down->host.cols;
    for (int p = 0; p < N_PRODUCTS; p++)
        o->weight[p] = weight_of(d, (enum product)p);
    const char *why = whole_refusal(o->onednn, o->engine, d);
    xm_debug(XM_DEBUG_DISPATCH, "oneDNN: %" PRIu64 " experts %s%s", o->experts,
             why ? "one by one: " : "in one call", why ? why : "");
    return why ? build_pieces(o, d, err) : build_whole(o, d, err);
}

enum xm_status
xm_onednn_experts_create(struct xm_engine *engine, const struct xm_moe_desc *desc,
                         struct xm_onednn_experts **out, struct xm_error *err)
{
    struct xm_onednn_experts *o = xm_calloc(1, sizeof(*o));
    if (!o)
        return xm_no_memory(err, "oneDNN's experts");
    o->engine = engine;
    enum xm_status status = init(o, desc, err);
    if (status != XM_OK) {
        xm_onednn_experts_destroy(o);
        return status;
    }
    *out = o;
    return XM_OK;
}

void
xm_onednn_experts_destroy(struct xm_onednn_experts *o)
{
    if (!o)
        return;
    for (int p = 0; p < N_PRODUCTS; p++) {
        xm_onednn_matmul_put(o->whole[p]);
        for (uint32_t i = 0; i < XM_ONEDNN_PIECES; i++)
            xm_onednn_matmul_put(o->piece[p][i]);
    }
    xm_onednn_unref(o->onednn);
    xm_free(o);
}

uint64_t
xm_onednn_experts_scratchpad(const struct xm_onednn_experts *o)
{
    return o->ends_bytes + o->scratchpad_bytes;
}

bool
xm_onednn_experts_want_ends(const struct xm_onednn_experts *o)
{
    return o->ends_bytes > 0;
}

/* ---- what the host must know -------------------------------------------------------- */

/* Divides the tiles evenly among the experts: in a dry run moe_sort has not computed them; for a
 * single expert this is exact. */
static void
spread(uint32_t *first, uint64_t experts, uint64_t tiles)
{
    for (uint64_t e = 0; e <= experts; e++)
        first[e] = (uint32_t)(e * tiles / experts);
}

static enum xm_status
read_tiles(const struct xm_onednn_experts *o, struct xm_moe_call *c)
{
    uint32_t *first = c->first;
    const bool is_alone = o->experts == 1 && !xm_moe_is_part(&c->m->desc.attr);
    if (is_alone || xm_dry_run()) {
        spread(first, o->experts, c->tiles);
        return XM_OK;
    }
    XM_TRY(xm_queue_read(c->queue, c->part[XM_MANY_FIRST], 0, first,
                         (o->experts + 1) * sizeof(*first), c->err));
    bool ok = first[0] == 0 && first[o->experts] <= c->tiles;
    for (uint64_t e = 0; e < o->experts && ok; e++)
        ok = first[e] <= first[e + 1];
    return ok ? XM_OK
              : xm_fail(c->err, XM_DEVICE,
                        "the tiles of the sorted experts are out of order");
}

enum xm_status
xm_onednn_experts_read(const struct xm_onednn_experts *o, struct xm_moe_call *c)
{
    if (xm_onednn_experts_want_ends(o))
        return XM_OK;
    c->first = xm_malloc((o->experts + 1) * sizeof(*c->first));
    return c->first ? read_tiles(o, c) : xm_no_memory(c->err, "the experts' tiles");
}

/* ---- runs --------------------------------------------------------------------------- */

struct call {
    const struct xm_onednn_experts *o;
    const struct xm_moe_call *b;
    struct xm_onednn_stream *stream;
};

/* Returns the operands of an expert's product from row `row` on. */
static struct xm_onednn_spans
spans_of(const struct call *c, enum product product, uint64_t expert, uint64_t row)
{
    const struct xm_onednn_experts *o = c->o;
    uint64_t g_at = row * o->inter * 2, h_at = g_at + c->b->tiles * TILE * o->inter * 2;
    const struct xm_onednn_span x = {c->b->part[XM_MANY_XY], row * o->hidden * 2},
                                y = {c->b->part[XM_MANY_XY],
                                     row * o->hidden * sizeof(float)},
                                g = {c->b->part[XM_MANY_H], g_at},
                                h = {c->b->part[XM_MANY_H], h_at};
    struct xm_onednn_spans spans = {.name = product == DOWN ? "moe_gemm_down_onednn"
                                                            : "moe_gemm_gate_up_onednn"};
    xm_onednn_weight_spans(o->weight[product], expert, &spans);
    spans.arg[XM_ONEDNN_X] = product == DOWN ? h : x;
    spans.arg[XM_ONEDNN_Y] = product == GATE ? g : product == UP ? h : y;
    if (product == UP)
        spans.arg[XM_ONEDNN_TIMES] = g;
    if (o->scratchpad_bytes)
        spans.arg[XM_ONEDNN_SCRATCHPAD] =
            (struct xm_onednn_span){c->b->part[XM_MANY_SCRATCHPAD], o->ends_bytes};
    return spans;
}

/* Runs a product of all experts. No expert has more rows than there are tokens, because a token
 * chooses an expert at most once. A run has more tokens than a chunk only if its sequences cannot
 * be cut; it may be too long for the matmul. */
static enum xm_status
run_whole(const struct call *c, enum product product)
{
    if (c->b->tiles * TILE > c->o->whole_rows)
        return xm_fail(c->b->err, XM_UNSUPPORTED,
                       "oneDNN's matmuls of the experts were built for %" PRIu64
                       " rows, but a run of %" PRIu64 " tokens may have %" PRIu64
                       " rows: choose a larger XM_UBATCH, or set GPU_USE_ONEDNN=NO",
                       c->o->whole_rows, c->b->tokens, c->b->tiles * TILE);
    struct xm_onednn_spans spans = spans_of(c, product, 0, 0);
    spans.arg[XM_ONEDNN_ENDS] =
        (struct xm_onednn_span){c->b->part[XM_MANY_SCRATCHPAD], 0};
    spans.most_rows = xm_align_up(c->b->tokens, TILE);
    return xm_onednn_matmul_run(c->o->whole[product], c->stream, &spans, c->b->err);
}

static enum xm_status
run_piece(const struct call *c, enum product product, uint64_t expert, uint32_t power,
          uint64_t row)
{
    const struct xm_onednn_spans spans = spans_of(c, product, expert, row);
    return xm_onednn_matmul_run(c->o->piece[product][power], c->stream, &spans,
                                c->b->err);
}

static enum xm_status
run_expert(const struct call *c, enum product first, enum product last, uint64_t expert)
{
    uint64_t begin = (uint64_t)c->b->first[expert] * TILE;
    uint64_t rows = (uint64_t)c->b->first[expert + 1] * TILE - begin;
    for (uint64_t done = 0; done < rows;) {
        const struct xm_onednn_piece piece =
            xm_onednn_piece_at(rows, done, LEAST_POWER, c->o->most);
        for (int p = (int)first; p <= (int)last; p++)
            XM_TRY(
                run_piece(c, (enum product)p, expert, piece.power, begin + piece.first));
        done = piece.first + xm_onednn_piece_rows(piece.power);
    }
    return XM_OK;
}

static enum xm_status
run_products(const struct call *c, enum product first, enum product last)
{
    if (!c->o->whole[first]) {
        for (uint64_t e = 0; e < c->o->experts; e++)
            XM_TRY(run_expert(c, first, last, e));
        return XM_OK;
    }
    for (int p = (int)first; p <= (int)last; p++)
        XM_TRY(run_whole(c, (enum product)p));
    return XM_OK;
}

static enum xm_status
run(const struct xm_onednn_experts *o, const struct xm_moe_call *b, enum product first,
    enum product last)
{
    struct call c = {o, b, NULL};
    XM_TRY(xm_onednn_begin(o->onednn, b->queue, &c.stream, b->err));
    enum xm_status status = run_products(&c, first, last);
    xm_onednn_end(c.stream);
    return status;
}

enum xm_status
xm_onednn_experts_gate_up(const struct xm_onednn_experts *o, const struct xm_moe_call *b)
{
    return run(o, b, GATE, UP);
}

enum xm_status
xm_onednn_experts_down(const struct xm_onednn_experts *o, const struct xm_moe_call *b)
{
    return run(o, b, DOWN, DOWN);
}
