/* SPDX-License-Identifier: Apache-2.0
 *
 * The primitive of a problem with random weights and inputs.
 *
 * Decode must read its weights from memory, not from a cache: therefore a small matrix has several
 * copies, which are used in turn, and each run uses other logits, so that it chooses other
 * experts.
 */
#include <stdlib.h>
#include <string.h>

#include "plugin/bench_kernels/bench.h"
#include "primitives/form.h"
#include "primitives/linear/linear.h"
#include "primitives/moe/moe.h"
#include "primitives/product.h"
#include "runtime/util/clock.h"
#include "runtime/util/memory.h"

enum { MAX_COPIES = 16, COLD_BYTES = 256 << 20, N_LOGITS = 16, RUNS_AT_ONCE = 16 };
enum { N_EXPERT_WEIGHTS = 3 };
/* A single run may take this factor longer than one of many runs, plus a launch. */
#define SINGLE_RUNS 2.0
#define LAUNCH_S    0.5e-3

struct xm_bench {
    struct xm_engine *engine;
    const struct xm_timed_problem *p;
    void *bytes[N_EXPERT_WEIGHTS * 3]; /* data, scales and zero points; owned */
    uint32_t n_bytes;
    struct xm_device_weight *weight[MAX_COPIES]; /* for experts: gate, up, down */
    struct xm_primitive *primitive[MAX_COPIES];
    uint32_t n_copies;
    struct bench_attention *attention; /* NULL: the problem is not attention */
    struct xm_buffer *x, *y, *logits[N_LOGITS], *scratch;
    struct xm_queue *queue;
    float *results; /* [n_rows][n_cols] of the first run; NULL: none */
    uint64_t n_rows, n_cols;
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

/* Random numbers are made for this many elements and repeated, because caches depend on addresses
 * only. */
enum { RANDOM_ELEMENTS = 1 << 16 };

static void
repeat(uint8_t *p, uint64_t made, uint64_t bytes)
{
    for (uint64_t at = made; at < bytes; at += made)
        memcpy(p + at, p, (size_t)(bytes - at < made ? bytes - at : made));
}

/* Makes n random elements: small floats, or arbitrary bits. For formats with scales inside blocks,
 * bytes without denormal scales are chosen, because processors multiply those very slowly. An
 * engine that only counts memory reads none of them. */
static enum xm_status
random_bytes(struct xm_bench *b, enum xm_element e, uint64_t n, struct xm_bytes *out,
             struct xm_error *err)
{
    uint64_t seed = 88172645463325252u + b->n_bytes, bytes = 0;
    bool floats = e == XM_F16 || e == XM_F32 || e == XM_BF16;
    const bool is_read = !xm_engine_only_counts(b->engine);
    const uint64_t made = !is_read ? 0 : n < RANDOM_ELEMENTS ? n : RANDOM_ELEMENTS;
    const uint64_t made_bytes = made * xm_element_bits(e) / 8;
    uint8_t *p = xm_element_bytes(e, n, &bytes) ? xm_calloc((size_t)bytes + 8, 1) : NULL;
    if (!p)
        return xm_no_memory(err, "%llu random elements", (unsigned long long)n);
    for (uint64_t i = 0; !floats && i < made_bytes; i += 8) {
        uint64_t v = next_random(&seed);
        if (e == XM_U8)
            v = (v & 0x7f7f7f7f7f7f7f7fu) | 0x2020202020202020u;
        memcpy(p + i, &v, 8);
    }
    for (uint64_t i = 0; floats && i < made; i++)
        xm_store_float(e, p, i, (float)(next_random(&seed) % 2001) / 1000.0f - 1.0f);
    if (made && made < n)
        repeat(p, made_bytes, bytes);
    b->bytes[b->n_bytes++] = p;
    *out = (struct xm_bytes){p, bytes};
    return XM_OK;
}

static enum xm_status
random_weight(struct xm_bench *b, uint64_t experts, uint64_t rows, uint64_t cols,
              struct xm_weight *out, struct xm_error *err)
{
    const struct xm_timed_problem *p = b->p;
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
    *out = w;
    return XM_OK;
}

static enum xm_status
random_buffer(struct xm_bench *b, enum xm_element e, uint64_t n, uint64_t seed,
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

/* ---- operands on the device ---------------------------------------------------------------- */

/* Makes copies of a linear layer's weight, as parts of one tall weight. */
static enum xm_status
create_linear_weights(struct xm_bench *b, struct xm_error *err)
{
    const struct xm_timed_problem *p = b->p;
    const double copies =
        p->tokens > XM_FEW_TOKENS ? 1 : COLD_BYTES / xm_timed_problem_bytes(p) + 1;
    const uint32_t n = copies > MAX_COPIES ? MAX_COPIES : (uint32_t)copies;
    struct xm_weight w;
    XM_TRY(random_weight(b, 1, p->rows * n, p->cols, &w, err));
    w.rows = p->rows;
    w.data.n /= n;
    w.scale.n /= n;
    w.zero_point.n /= n;
    for (uint32_t i = 0; i < n; i++) {
        XM_TRY(xm_device_weight_create(b->engine, &w, &b->weight[i], err));
        w.data.p += w.data.n;
        if (w.scale.p)
            w.scale.p += w.scale.n;
        if (w.zero_point.p)
            w.zero_point.p += w.zero_point.n;
    }
    b->n_copies = n;
    return XM_OK;
}

/* Makes the experts' gate, up and down weights. */
static enum xm_status
create_experts(struct xm_bench *b, struct xm_error *err)
{
    const struct xm_timed_problem *p = b->p;
    struct xm_weight w;
    for (uint32_t i = 0; i < N_EXPERT_WEIGHTS; i++) {
        const bool is_down = i == N_EXPERT_WEIGHTS - 1;
        XM_TRY(random_weight(b, p->experts, is_down ? p->hidden : p->inter,
                             is_down ? p->inter : p->hidden, &w, err));
        XM_TRY(xm_device_weight_create(b->engine, &w, &b->weight[i], err));
    }
    return XM_OK;
}

static enum xm_status
create_moe_weights(struct xm_bench *b, struct xm_error *err)
{
    const struct xm_timed_problem *p = b->p;
    b->n_copies = 1;
    XM_TRY(create_experts(b, err));
    for (uint64_t i = 0; i < N_LOGITS; i++)
        XM_TRY(random_buffer(b, XM_F32, p->tokens * p->experts, i, &b->logits[i], err));
    return XM_OK;
}

static enum xm_status
create_data(struct xm_bench *b, struct xm_error *err)
{
    const struct xm_timed_problem *p = b->p;
    const bool moe = p->kind == XM_TIMED_MOE;
    const uint64_t width = xm_element_bits(p->activations) / 8;
    XM_TRY(xm_queue_create(b->engine, &b->queue, err));
    if (p->kind == XM_TIMED_ATTENTION)
        return XM_OK; /* made with each primitive, because it is small */
    XM_TRY(random_buffer(b, p->activations, p->tokens * (moe ? p->hidden : p->cols), 99,
                         &b->x, err));
    XM_TRY(xm_buffer_create(b->engine, XM_USE_DEVICE,
                            p->tokens * (moe ? p->hidden : p->rows) * width, &b->y, err));
    return moe ? create_moe_weights(b, err) : create_linear_weights(b, err);
}

enum xm_status
xm_bench_create(struct xm_engine *engine, const struct xm_timed_problem *p,
                struct xm_bench **out, struct xm_error *err)
{
    struct xm_bench *b = *out = xm_calloc(1, sizeof(*b));
    if (!b)
        return xm_no_memory(err, "a problem");
    b->engine = engine;
    b->p = p;
    return create_data(b, err);
}

void
xm_bench_destroy(struct xm_bench *b)
{
    if (!b)
        return;
    xm_queue_destroy(b->queue);
    for (size_t i = 0; i < XM_ARRAY_LEN(b->weight); i++)
        xm_device_weight_unref(b->weight[i]);
    for (size_t i = 0; i < N_LOGITS; i++)
        xm_buffer_unref(b->logits[i]);
    xm_buffer_unref(b->x);
    xm_buffer_unref(b->y);
    for (uint32_t i = 0; i < b->n_bytes; i++)
        xm_free(b->bytes[i]);
    xm_free(b->results);
    xm_free(b);
}

/* ---- primitives -------------------------------------------------------------------- */

/* Returns the number of columns that share an activation scale, as programs choose it for a step
 * with these n weights. */
static uint32_t
factor_columns(const struct xm_bench *b, uint32_t first, uint32_t n)
{
    bool is_coarse = true;
    for (uint32_t i = first; i < first + n; i++)
        is_coarse = is_coarse && xm_product_wants_coarse(xm_engine_info(b->engine),
                                                         &b->weight[i]->host);
    return is_coarse ? XM_FACTOR_COARSE : XM_FACTOR_FINE;
}

static enum xm_status
create_linear(struct xm_bench *b, uint32_t number, struct xm_error *err)
{
    const struct xm_linear_desc desc = {.src = b->p->activations,
                                        .dst = b->p->activations,
                                        .factor = factor_columns(b, number, 1),
                                        .n = 1,
                                        .segment = {{b->weight[number], NULL}}};
    return xm_linear_create(b->engine, &desc, &b->primitive[number], err);
}

static enum xm_status
create_moe(struct xm_bench *b, struct xm_error *err)
{
    const struct xm_timed_problem *p = b->p;
    const struct xm_moe_desc desc = {
        .attr = {.routing = {.top_k = (int64_t)p->top_k, .normalise = true, .scale = 1}},
        .experts = {.gate = b->weight[0], .up = b->weight[1], .down = b->weight[2]},
        .src = p->activations,
        .dst = p->activations,
        .add = p->activations,
        .factor = factor_columns(b, 0, 3)};
    return xm_moe_create(b->engine, &desc, &b->primitive[0], err);
}

static struct xm_operand
matrix(struct xm_buffer *buffer, enum xm_element e, uint64_t rows, uint64_t cols)
{
    const struct xm_operand o = {buffer, e, 2, {(int64_t)rows, (int64_t)cols}};
    return o;
}

static void
operands_of(const struct xm_bench *b, uint64_t run, struct xm_operand *o)
{
    const struct xm_timed_problem *p = b->p;
    enum xm_element e = p->activations;
    memset(o, 0, XM_MOE_N_OPERANDS * sizeof(*o));
    if (p->kind == XM_TIMED_LINEAR) {
        o[XM_LINEAR_X] = matrix(b->x, e, p->tokens, p->cols);
        o[XM_LINEAR_Y] = matrix(b->y, e, p->tokens, p->rows);
        return;
    }
    o[XM_MOE_HIDDEN] = matrix(b->x, e, p->tokens, p->hidden);
    o[XM_MOE_ROUTING] = matrix(b->logits[run % N_LOGITS], XM_F32, p->tokens, p->experts);
    o[XM_MOE_OUT] = matrix(b->y, e, p->tokens, p->hidden);
}

static enum xm_status
create_primitives(struct xm_bench *b, struct xm_error *err)
{
    uint64_t bytes = 0;
    struct xm_operand o[XM_MOE_N_OPERANDS];
    if (b->p->kind == XM_TIMED_ATTENTION)
        return xm_bench_attention_create(b->engine, b->queue, b->p, &b->attention, err);
    if (b->p->kind == XM_TIMED_MOE)
        XM_TRY(create_moe(b, err));
    for (uint32_t i = 0; i < b->n_copies && b->p->kind == XM_TIMED_LINEAR; i++)
        XM_TRY(create_linear(b, i, err));
    operands_of(b, 0, o);
    XM_TRY(xm_primitive_plan(b->primitive[0], o, NULL, &bytes, err));
    return bytes ? xm_buffer_create(b->engine, XM_USE_DEVICE, bytes, &b->scratch, err)
                 : XM_OK;
}

static void
destroy_primitives(struct xm_bench *b)
{
    xm_bench_attention_destroy(b->attention);
    b->attention = NULL;
    for (uint32_t i = 0; i < MAX_COPIES; i++) {
        xm_primitive_destroy(b->primitive[i]);
        b->primitive[i] = NULL;
    }
    xm_buffer_unref(b->scratch);
    b->scratch = NULL;
}

/* ---- time -------------------------------------------------------------------------- */

static enum xm_status
run_once(struct xm_bench *b, uint64_t number, struct xm_error *err)
{
    const struct xm_run run = {.queue = b->queue, .scratch = b->scratch};
    struct xm_operand o[XM_MOE_N_OPERANDS];
    if (b->attention)
        return xm_bench_attention_run(b->attention, err);
    operands_of(b, number, o);
    return xm_primitive_run(b->primitive[number % b->n_copies], o, &run, err);
}

/* Makes `runs` runs and waits; returns the seconds of one. */
static enum xm_status
time_runs(struct xm_bench *b, uint64_t runs, uint64_t *done, double *seconds,
          struct xm_error *err)
{
    double start = xm_now();
    for (uint64_t i = 0; i < runs; i++, ++*done)
        XM_TRY(run_once(b, *done, err));
    XM_TRY(xm_queue_finish(b->queue, err));
    *seconds = (xm_now() - start) / (double)runs;
    return XM_OK;
}

/* A byte that no kernel writes to all of its results, and the number of bytes that are checked. */
enum { UNTOUCHED = 0x5a, LOOKED_AT = 64 };
enum { MOST_RESULTS = 1 << 20 };

/* Reads the results of the first rows, at most MOST_RESULTS elements but at least one row. Fails if
 * the run left their first bytes as they were: drivers that only record or simulate launches do;
 * their times mean nothing. */
static enum xm_status
read_results(struct xm_bench *b, struct xm_error *err)
{
    const struct xm_timed_problem *p = b->p;
    const uint64_t width = xm_element_bits(p->activations) / 8;
    const uint64_t cols = p->kind == XM_TIMED_MOE ? p->hidden : p->rows;
    const uint64_t most = MOST_RESULTS / cols + 1;
    const uint64_t rows = p->tokens < most ? p->tokens : most,
                   bytes = rows * cols * width;
    uint8_t *raw = xm_malloc((size_t)bytes);
    float *results = xm_realloc(b->results, (size_t)(rows * cols * sizeof(float)));
    bool is_touched = false;
    b->results = results ? results : b->results;
    enum xm_status s = raw && results ? xm_queue_read(b->queue, b->y, 0, raw, bytes, err)
                                      : xm_no_memory(err, "the results of a kernel");
    for (uint64_t i = 0; s == XM_OK && i < bytes && i < LOOKED_AT; i++)
        is_touched |= raw[i] != UNTOUCHED;
    for (uint64_t i = 0; s == XM_OK && i < rows * cols; i++)
        results[i] = xm_load_float(p->activations, raw, i);
    xm_free(raw);
    b->n_rows = s == XM_OK && is_touched ? rows : 0;
    b->n_cols = cols;
    if (s == XM_OK && !is_touched)
        return xm_fail(err, XM_DEVICE,
                       "the device computes nothing, so its times mean nothing");
    return s;
}

/* Makes the first run and reads its results. Attention is not checked: over a cache of equal bytes
 * it may write UNTOUCHED. */
static enum xm_status
run_first(struct xm_bench *b, struct xm_error *err)
{
    b->n_rows = 0;
    if (b->y)
        XM_TRY(xm_queue_fill(b->queue, b->y, 0, UNTOUCHED, xm_buffer_bytes(b->y), err));
    XM_TRY(run_once(b, 0, err));
    return b->y ? read_results(b, err) : xm_queue_finish(b->queue, err);
}

enum xm_status
xm_bench_run(struct xm_bench *b, struct xm_error *err)
{
    enum xm_status s = create_primitives(b, err);
    if (s == XM_OK)
        s = run_first(b, err);
    destroy_primitives(b);
    return s;
}

const float *
xm_bench_results(const struct xm_bench *b, uint64_t *rows, uint64_t *cols)
{
    *rows = b->n_rows;
    *cols = b->n_cols;
    return b->n_rows ? b->results : NULL;
}

/* Times runs after the first one, which builds kernels and touches pages. Starts with a single run,
 * which is enough for a variant that is far slower than the best. */
static enum xm_status
time_all(struct xm_bench *b, double seconds, double hopeless, double *best,
         struct xm_error *err)
{
    uint64_t done = 1, runs = b->p->tokens > XM_FEW_TOKENS ? 1 : RUNS_AT_ONCE;
    double t;
    XM_TRY(time_runs(b, 1, &done, best, err));
    if (hopeless > 0 && *best > SINGLE_RUNS * hopeless + LAUNCH_S)
        return XM_OK;
    XM_TRY(time_runs(b, runs, &done, &t, err));
    double start = xm_now();
    *best = 1e30;
    do {
        XM_TRY(time_runs(b, runs, &done, &t, err));
        *best = t < *best ? t : *best;
    } while (xm_now() - start < seconds);
    return XM_OK;
}

static void
describe(const struct xm_bench *b, char *kernels, size_t bytes)
{
    struct xm_operand o[XM_MOE_N_OPERANDS];
    if (b->attention) {
        xm_bench_attention_describe(b->attention, kernels, bytes);
        return;
    }
    operands_of(b, 0, o);
    xm_primitive_describe(b->primitive[0], o, kernels, bytes);
}

enum xm_status
xm_bench_build(struct xm_bench *b, struct xm_error *err)
{
    enum xm_status s = create_primitives(b, err);
    if (s == XM_OK)
        s = run_once(b, 0, err);
    destroy_primitives(b);
    return s;
}

enum xm_status
xm_bench_time(struct xm_bench *b, double seconds, double hopeless,
              struct xm_bench_result *out, struct xm_error *err)
{
    enum xm_status s = create_primitives(b, err);
    *out = (struct xm_bench_result){0};
    if (s == XM_OK) {
        describe(b, out->kernels, sizeof(out->kernels));
        s = run_first(b, err);
        out->wrote_nothing = s == XM_DEVICE && b->y && b->n_rows == 0;
    }
    if (s == XM_OK) {
        const double start = xm_now();
        s = time_all(b, seconds, hopeless, &out->best, err);
        out->spent = xm_now() - start;
    }
    destroy_primitives(b);
    return s;
}

enum xm_status
xm_bench_problem_time(struct xm_engine *engine, const struct xm_timed_problem *p,
                      double seconds, struct xm_bench_result *out, struct xm_error *err)
{
    struct xm_bench *b = NULL;
    enum xm_status s = xm_bench_create(engine, p, &b, err);
    if (s == XM_OK)
        s = xm_bench_time(b, seconds, 0, out, err);
    xm_bench_destroy(b);
    return s;
}
