/* SPDX-License-Identifier: Apache-2.0
 *
 * A problem's primitive with random weights and inputs.
 *
 * Decode is only honest when its weights come from memory: a small matrix is there several
 * times, and the copies take turns; experts are chosen anew by other logits each run.
 */
#include <stdlib.h>
#include <string.h>

#include "plugin/bench_kernels/bench.h"
#include "primitives/form.h"
#include "primitives/linear/linear.h"
#include "primitives/moe/moe.h"
#include "runtime/util/memory.h"

enum { MAX_COPIES = 16, COLD_BYTES = 256 << 20, N_LOGITS = 16, RUNS_AT_ONCE = 16 };

struct bench {
    struct xm_engine *engine;
    const struct problem *p;
    void *bytes[3 * 3]; /* of up to three weights; owned */
    uint32_t n_bytes;
    struct xm_device_weight *weight[3];
    struct xm_primitive *primitive[MAX_COPIES];
    uint32_t n_copies;
    struct bench_attention *attention; /* NULL: of another kind */
    struct xm_buffer *x, *y, *logits[N_LOGITS], *scratch;
    struct xm_queue *queue;
};

static uint64_t
next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* ---- operands ---------------------------------------------------------------------- */

/* n elements: small floats, or any bits; of bytes, those whose blocks have no scale so small that
 * processors take an age to multiply it. */
static enum xm_status
random_bytes(struct bench *b, enum xm_element e, uint64_t n, struct xm_bytes *out,
             struct xm_error *err)
{
    uint64_t seed = 88172645463325252u + b->n_bytes, bytes = 0;
    bool floats = e == XM_F16 || e == XM_F32 || e == XM_BF16;
    uint8_t *p = xm_element_bytes(e, n, &bytes) ? xm_malloc((size_t)bytes + 8) : NULL;
    if (!p)
        return xm_no_memory(err, "%llu random elements", (unsigned long long)n);
    for (uint64_t i = 0; !floats && i < bytes; i += 8) {
        uint64_t v = next_random(&seed);
        if (e == XM_U8)
            v = (v & 0x7f7f7f7f7f7f7f7fu) | 0x2020202020202020u;
        memcpy(p + i, &v, 8);
    }
    for (uint64_t i = 0; floats && i < n; i++)
        xm_store_float(e, p, i, (float)(next_random(&seed) % 2001) / 1000.0f - 1.0f);
    b->bytes[b->n_bytes++] = p;
    *out = (struct xm_bytes){p, bytes};
    return XM_OK;
}

static enum xm_status
random_weight(struct bench *b, uint64_t experts, uint64_t rows, uint64_t cols,
              struct xm_device_weight **out, struct xm_error *err)
{
    const struct problem *p = b->p;
    const struct xm_weight_format_info *f = &xm_weight_formats[p->format];
    const uint64_t n = experts * rows * cols;
    struct xm_weight w = {.format = p->format,
                          .element = p->weight,
                          .rank = experts > 1 ? 3 : 2,
                          .experts = experts,
                          .rows = rows,
                          .cols = cols,
                          .group = p->group};
    XM_TRY(random_bytes(b, p->weight,
                        f->block_bytes ? n / f->block_cols * f->block_bytes : n, &w.data,
                        err));
    if (p->group) {
        uint64_t groups = experts * rows * (cols / p->group);
        w.scale_element = XM_F16;
        XM_TRY(random_bytes(b, XM_F16, groups, &w.scale, err));
        if (xm_element_is_int(p->weight)) {
            w.zero_point_element = p->weight;
            XM_TRY(random_bytes(b, p->weight, groups, &w.zero_point, err));
        }
    }
    return xm_device_weight_create(b->engine, &w, out, err);
}

static enum xm_status
random_buffer(struct bench *b, enum xm_element e, uint64_t n, uint64_t seed,
              struct xm_buffer **out, struct xm_error *err)
{
    uint64_t bytes = n * xm_element_bits(e) / 8, state = 0x9e3779b97f4a7c15u + seed;
    void *host = xm_malloc((size_t)bytes);
    if (!host)
        return xm_no_memory(err, "an operand");
    for (uint64_t i = 0; i < n; i++)
        xm_store_float(e, host, i, (float)(next_random(&state) % 2001) / 1000.0f - 1.0f);
    enum xm_status s = xm_buffer_create(b->engine, XM_USE_DEVICE, bytes, out, err);
    if (s == XM_OK)
        s = xm_queue_write(b->queue, *out, 0, host, bytes, err);
    xm_free(host);
    return s;
}

/* ---- primitives -------------------------------------------------------------------- */

static enum xm_status
create_linear(struct bench *b, struct xm_error *err)
{
    const struct problem *p = b->p;
    double copies =
        p->tokens > XM_FEW_TOKENS ? 1 : COLD_BYTES / xm_bench_problem_bytes(p) + 1;
    uint32_t n = copies > MAX_COPIES ? MAX_COPIES : (uint32_t)copies;
    /* The copies are stretches of one tall weight, each a primitive of its own. */
    XM_TRY(random_weight(b, 1, p->rows * n, p->cols, &b->weight[0], err));
    struct xm_weight tall = b->weight[0]->host;
    for (; b->n_copies < n; b->n_copies++) {
        struct xm_weight w = tall;
        struct xm_device_weight *copy = NULL;
        w.rows = p->rows;
        w.data.n /= n;
        w.data.p += b->n_copies * w.data.n;
        w.scale.n /= n;
        w.zero_point.n /= n;
        if (p->group) {
            w.scale.p += b->n_copies * w.scale.n;
            if (w.zero_point.p)
                w.zero_point.p += b->n_copies * w.zero_point.n;
        }
        XM_TRY(xm_device_weight_create(b->engine, &w, &copy, err));
        const struct xm_linear_desc desc = {.src = p->activations,
                                            .dst = p->activations,
                                            .factor = XM_FACTOR_FINE,
                                            .n = 1,
                                            .segment = {{copy, NULL}}};
        enum xm_status s =
            xm_linear_create(b->engine, &desc, &b->primitive[b->n_copies], err);
        xm_device_weight_unref(copy);
        if (s != XM_OK)
            return s;
    }
    return XM_OK;
}

static enum xm_status
create_moe(struct bench *b, struct xm_error *err)
{
    const struct problem *p = b->p;
    XM_TRY(random_weight(b, p->experts, p->inter, p->hidden, &b->weight[0], err));
    XM_TRY(random_weight(b, p->experts, p->inter, p->hidden, &b->weight[1], err));
    XM_TRY(random_weight(b, p->experts, p->hidden, p->inter, &b->weight[2], err));
    for (uint64_t i = 0; i < N_LOGITS; i++)
        XM_TRY(random_buffer(b, XM_F32, p->tokens * p->experts, i, &b->logits[i], err));
    const struct xm_moe_desc desc = {
        .attr = {.routing = {.top_k = (int64_t)p->top_k, .normalise = true, .scale = 1}},
        .experts = {.gate = b->weight[0], .up = b->weight[1], .down = b->weight[2]},
        .src = p->activations,
        .dst = p->activations,
        .add = p->activations,
        .factor = XM_FACTOR_FINE};
    b->n_copies = 1;
    return xm_moe_create(b->engine, &desc, &b->primitive[0], err);
}

static struct xm_operand
matrix(struct xm_buffer *buffer, enum xm_element e, uint64_t rows, uint64_t cols)
{
    const struct xm_operand o = {buffer, e, 2, {(int64_t)rows, (int64_t)cols}};
    return o;
}

static void
operands_of(const struct bench *b, uint64_t run, struct xm_operand *o)
{
    const struct problem *p = b->p;
    enum xm_element e = p->activations;
    memset(o, 0, XM_MOE_N_OPERANDS * sizeof(*o));
    if (p->kind == BENCH_LINEAR) {
        o[XM_LINEAR_X] = matrix(b->x, e, p->tokens, p->cols);
        o[XM_LINEAR_Y] = matrix(b->y, e, p->tokens, p->rows);
        return;
    }
    o[XM_MOE_HIDDEN] = matrix(b->x, e, p->tokens, p->hidden);
    o[XM_MOE_ROUTING] = matrix(b->logits[run % N_LOGITS], XM_F32, p->tokens, p->experts);
    o[XM_MOE_OUT] = matrix(b->y, e, p->tokens, p->hidden);
}

static enum xm_status
create(struct bench *b, struct xm_error *err)
{
    const struct problem *p = b->p;
    bool moe = p->kind == BENCH_MOE;
    uint64_t bytes = 0, width = xm_element_bits(p->activations) / 8;
    struct xm_operand o[XM_MOE_N_OPERANDS];
    XM_TRY(xm_queue_create(b->engine, &b->queue, err));
    if (p->kind == BENCH_ATTENTION)
        return xm_bench_attention_create(b->engine, b->queue, p, &b->attention, err);
    XM_TRY(random_buffer(b, p->activations, p->tokens * (moe ? p->hidden : p->cols), 99,
                         &b->x, err));
    XM_TRY(xm_buffer_create(b->engine, XM_USE_DEVICE,
                            p->tokens * (moe ? p->hidden : p->rows) * width, &b->y, err));
    XM_TRY(moe ? create_moe(b, err) : create_linear(b, err));
    operands_of(b, 0, o);
    XM_TRY(xm_primitive_plan(b->primitive[0], o, &bytes, err));
    return bytes ? xm_buffer_create(b->engine, XM_USE_DEVICE, bytes, &b->scratch, err)
                 : XM_OK;
}

static void
destroy(struct bench *b)
{
    xm_bench_attention_destroy(b->attention);
    xm_queue_destroy(b->queue);
    for (uint32_t i = 0; i < MAX_COPIES; i++)
        xm_primitive_destroy(b->primitive[i]);
    for (size_t i = 0; i < XM_ARRAY_LEN(b->weight); i++)
        xm_device_weight_unref(b->weight[i]);
    for (size_t i = 0; i < N_LOGITS; i++)
        xm_buffer_unref(b->logits[i]);
    xm_buffer_unref(b->x);
    xm_buffer_unref(b->y);
    xm_buffer_unref(b->scratch);
    for (uint32_t i = 0; i < b->n_bytes; i++)
        xm_free(b->bytes[i]);
}

/* ---- time -------------------------------------------------------------------------- */

static enum xm_status
run_once(struct bench *b, uint64_t number, struct xm_error *err)
{
    const struct xm_run run = {.queue = b->queue, .scratch = b->scratch};
    struct xm_operand o[XM_MOE_N_OPERANDS];
    if (b->attention)
        return xm_bench_attention_run(b->attention, err);
    operands_of(b, number, o);
    return xm_primitive_run(b->primitive[number % b->n_copies], o, &run, err);
}

/* `runs` runs, then a wait; seconds of one. */
static enum xm_status
time_runs(struct bench *b, uint64_t runs, uint64_t *done, double *seconds,
          struct xm_error *err)
{
    double start = xm_bench_seconds();
    for (uint64_t i = 0; i < runs; i++, ++*done)
        XM_TRY(run_once(b, *done, err));
    XM_TRY(xm_queue_finish(b->queue, err));
    *seconds = (xm_bench_seconds() - start) / (double)runs;
    return XM_OK;
}

/* The first runs compile and touch pages: they do not count. */
static enum xm_status
time_all(struct bench *b, double seconds, double *best, struct xm_error *err)
{
    uint64_t done = 0, runs = b->p->tokens > XM_FEW_TOKENS ? 1 : RUNS_AT_ONCE;
    double t;
    XM_TRY(time_runs(b, runs, &done, &t, err));
    double start = xm_bench_seconds();
    *best = 1e30;
    do {
        XM_TRY(time_runs(b, runs, &done, &t, err));
        *best = t < *best ? t : *best;
    } while (xm_bench_seconds() - start < seconds);
    return XM_OK;
}

enum xm_status
xm_bench_problem_time(struct xm_engine *engine, const struct problem *p, double seconds,
                      double *best, char *kernels, size_t kernels_bytes,
                      struct xm_error *err)
{
    struct bench b = {.engine = engine, .p = p};
    struct xm_operand o[XM_MOE_N_OPERANDS];
    enum xm_status s = create(&b, err);
    if (s == XM_OK && b.attention)
        xm_bench_attention_describe(b.attention, kernels, kernels_bytes);
    else if (s == XM_OK) {
        operands_of(&b, 0, o);
        xm_primitive_describe(b.primitive[0], o, kernels, kernels_bytes);
    }
    if (s == XM_OK)
        s = time_all(&b, seconds, best, err);
    destroy(&b);
    return s;
}
