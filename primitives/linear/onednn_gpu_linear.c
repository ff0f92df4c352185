/* SPDX-License-Identifier: Apache-2.0
 *
 * linear through oneDNN's GPU engine: variant linear_gemm_onednn_gpu. Quantised weights are
 * multiplied as they are; activations are f16. The tokens are cut into pieces of few sizes
 * (primitives/onednn/onednn.h), all built at creation.
 */
#include "primitives/linear/linear_library.h"
#include "primitives/onednn/onednn_weight.h"
#include "runtime/util/memory.h"

/* Runs of fewer than 2^2 tokens are not given to oneDNN: linear_few's rows are faster
 * (linear.c). */
enum { LEAST_POWER = 2 };
/* power of the piece for which oneDNN is asked for an implementation */
enum { PROBE_POWER = 7 };

struct linear {
    struct xm_onednn *onednn; /* referenced */
    const struct xm_device_weight *weight;
    struct xm_buffer *bias;
    uint64_t x_step, y_step, times_step; /* bytes from token to token */
    uint32_t most;                       /* power of the largest piece */
    struct xm_onednn_matmul *piece[XM_ONEDNN_PIECES];
    uint64_t scratch_bytes;
};

static struct xm_onednn_problem
problem_of(const struct xm_weight *w, enum xm_element dst,
           const struct xm_library_gate *gate, bool bias, uint32_t power)
{
    struct xm_onednn_problem p = xm_onednn_weight_problem(w);
    p.m = xm_onednn_piece_rows(power);
    p.x = XM_F16;
    p.y = dst;
    p.bias = bias;
    if (gate) {
        p.activated = p.times = true;
        p.activation = gate->activation;
        p.beta = 1.0f;
        p.times_step = gate->times_step;
    }
    return p;
}

/* Returns NULL, or why oneDNN cannot multiply pieces of tokens by this weight. */
static const char *
shape_refusal(const struct xm_device_info *device, const struct xm_weight *w,
              enum xm_element src, enum xm_element dst)
{
    uint64_t x_step = w->cols * 2, y_step = w->rows * xm_element_bits(dst) / 8;
    if (src != XM_F16)
        return "oneDNN's GPU engine is used only for f16 activations";
    /* The last piece may begin at any token, so that every row must be aligned. */
    if (x_step % device->base_align || y_step % device->base_align)
        return "the rows of the activations are not aligned for oneDNN";
    return xm_onednn_weight_refuses(device, w);
}

const char *
xm_onednn_gpu_linear_refuses(struct xm_engine *engine, const struct xm_weight *w,
                             enum xm_element src, enum xm_element dst,
                             const struct xm_library_gate *gate)
{
    struct xm_onednn *o = xm_onednn_of(engine);
    if (!o) {
        const char *why = xm_onednn_refuses(engine);
        return why ? why : "oneDNN's GPU engine is not open: see GPU_USE_ONEDNN";
    }
    const struct xm_onednn_problem p = problem_of(w, dst, gate, false, PROBE_POWER);
    const char *why = shape_refusal(xm_engine_info(engine), w, src, dst);
    if (!why)
        why = xm_onednn_declines(o, &p);
    xm_onednn_unref(o);
    return why;
}

static enum xm_status
build(struct linear *l, struct xm_engine *engine, const struct xm_library_desc *d,
      struct xm_error *err)
{
    l->most = xm_onednn_largest_piece(xm_chunk_tokens(engine, d->chunk), LEAST_POWER);
    for (uint32_t i = LEAST_POWER; i <= l->most; i++) {
        const struct xm_onednn_problem p =
            problem_of(&d->weight->host, d->dst, d->gate, d->bias != NULL, i);
        XM_TRY(xm_onednn_matmul_get(l->onednn, &p, &l->piece[i], err));
        uint64_t bytes = xm_onednn_matmul_scratch(l->piece[i]);
        l->scratch_bytes = bytes > l->scratch_bytes ? bytes : l->scratch_bytes;
    }
    return XM_OK;
}

static enum xm_status
init(struct linear *l, struct xm_engine *engine, const struct xm_library_desc *d,
     struct xm_error *err)
{
    const struct xm_weight *w = &d->weight->host;
    const uint64_t y_bytes = xm_element_bits(d->dst) / 8;
    l->onednn = xm_onednn_of(engine);
    if (!l->onednn)
        return xm_fail(err, XM_UNSUPPORTED, "oneDNN's GPU engine is not open");
    l->x_step = w->cols * 2;
    l->y_step = w->rows * y_bytes;
    if (d->gate)
        l->times_step = d->gate->times_step * y_bytes;
    l->bias = d->bias;
    l->weight = d->weight;
    return build(l, engine, d, err);
}

static void
destroy(void *linear)
{
    struct linear *l = linear;
    if (!l)
        return;
    for (uint32_t i = 0; i < XM_ONEDNN_PIECES; i++)
        xm_onednn_matmul_put(l->piece[i]);
    xm_onednn_unref(l->onednn);
    xm_free(l);
}

static enum xm_status
create(struct xm_engine *engine, const struct xm_library_desc *desc, void **out,
       struct xm_error *err)
{
    struct linear *l = xm_calloc(1, sizeof(*l));
    if (!l)
        return xm_no_memory(err, "a oneDNN linear");
    enum xm_status status = init(l, engine, desc, err);
    if (status != XM_OK) {
        destroy(l);
        return status;
    }
    *out = l;
    return XM_OK;
}

static uint64_t
scratch(const void *linear, const struct xm_primitive *p, uint64_t tokens)
{
    const struct linear *l = linear;
    (void)tokens;
    return l->scratch_bytes ? xm_scratch_bytes(p, l->scratch_bytes) : 0;
}

/* Enqueues all pieces. They run one after another, so that one scratchpad serves all. */
static enum xm_status
run_pieces(const struct linear *l, const struct xm_library_call *c,
           struct xm_onednn_stream *stream, struct xm_onednn_spans *spans,
           struct xm_error *err)
{
    for (uint64_t t = 0; t < c->tokens;) {
        const struct xm_onednn_piece piece =
            xm_onednn_piece_at(c->tokens, t, LEAST_POWER, l->most);
        spans->arg[XM_ONEDNN_X] = (struct xm_onednn_span){c->x, piece.first * l->x_step};
        spans->arg[XM_ONEDNN_Y] = (struct xm_onednn_span){c->y, piece.first * l->y_step};
        spans->arg[XM_ONEDNN_TIMES] = (struct xm_onednn_span){
            c->times.buffer, c->times.offset + piece.first * l->times_step};
        XM_TRY(xm_onednn_matmul_run(l->piece[piece.power], stream, spans, err));
        t = piece.first + xm_onednn_piece_rows(piece.power);
    }
    return XM_OK;
}

static enum xm_status
run(void *linear, const struct xm_library_call *call, struct xm_scratch *s,
    struct xm_queue *queue, struct xm_error *err)
{
    const struct linear *l = linear;
    struct xm_onednn_spans spans = {.name = "linear_gemm_onednn_gpu"};
    struct xm_onednn_stream *stream;
    if (l->scratch_bytes)
        XM_TRY(xm_scratch_take(s, l->scratch_bytes,
                               &spans.arg[XM_ONEDNN_SCRATCHPAD].buffer, err));
    xm_onednn_weight_spans(l->weight, 0, &spans);
    spans.arg[XM_ONEDNN_BIAS].buffer = l->bias;
    XM_TRY(xm_onednn_begin(l->onednn, queue, &stream, err));
    enum xm_status status = run_pieces(l, call, stream, &spans, err);
    xm_onednn_end(stream);
    return status;
}

const struct xm_linear_library xm_onednn_gpu_linear = {create, destroy, scratch, run};
