/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the requests, sequences and batches of plugin/plugin.h for GPU programs (request.h,
 * kv/kv_sequence.h, batcher.h).
 */
#include <string.h>

#include "plugin/gpu/batcher.h"
#include "plugin/gpu/gpu_plugin.h"
#include "plugin/gpu/model_cache.h"
#include "plugin/gpu/request_profile.h"
#include "plugin/gpu/step_checker.h"
#include "plugin/kv/kv_file.h"

/* ---- requests ---- */

struct gpu_infer {
    struct xm_infer base; /* first */
    struct xm_request *request;
    struct xm_step_checker *checker; /* NULL: steps are not checked */
};

static struct xm_request *
request_of(const struct xm_infer *r)
{
    return ((const struct gpu_infer *)r)->request;
}

static enum xm_status
infer_set_input(struct xm_infer *r, uint32_t input, const struct xm_host_tensor *t,
                struct xm_error *err)
{
    return xm_request_set_input(request_of(r), input, t, err);
}

static enum xm_status
infer_run(struct xm_infer *r, struct xm_error *err)
{
    return xm_request_infer(request_of(r), err);
}

static enum xm_status
infer_output(struct xm_infer *r, uint32_t output, struct xm_host_tensor *t,
             struct xm_error *err)
{
    return xm_request_output(request_of(r), output, t, err);
}

static enum xm_status
infer_set_remote_input(struct xm_infer *r, uint32_t input, const struct xm_host_tensor *t,
                       struct xm_remote *m, struct xm_error *err)
{
    struct xm_buffer *b = NULL;
    XM_TRY(xm_gpu_buffer_of(m, &b, err));
    return xm_request_set_remote_input(request_of(r), input, t, b, err);
}

static enum xm_status
infer_set_remote_output(struct xm_infer *r, uint32_t output, struct xm_remote *m,
                        struct xm_error *err)
{
    struct xm_buffer *b = NULL;
    if (m)
        XM_TRY(xm_gpu_buffer_of(m, &b, err));
    return xm_request_set_remote_output(request_of(r), output, b, err);
}

static enum xm_status
infer_describe_output(struct xm_infer *r, uint32_t output, struct xm_host_tensor *t,
                      struct xm_error *err)
{
    return xm_request_describe_output(request_of(r), output, t, err);
}

static void
infer_reset(struct xm_infer *r)
{
    xm_request_reset(request_of(r));
}

static void
infer_truncate(struct xm_infer *r, uint64_t past)
{
    xm_request_truncate(request_of(r), past);
}

static uint64_t
infer_past(const struct xm_infer *r)
{
    return xm_request_past(request_of(r));
}

static void
infer_cancel(struct xm_infer *r)
{
    xm_request_cancel(request_of(r));
}

static void
infer_resume(struct xm_infer *r)
{
    xm_request_resume(request_of(r));
}

static void
infer_watch(struct xm_infer *r, xm_tokens_fn fn, void *ctx)
{
    xm_request_watch(request_of(r), fn, ctx);
}

static void
infer_stats(const struct xm_infer *r, struct xm_request_stats *out)
{
    xm_request_stats(request_of(r), out);
}

static enum xm_status
infer_check(struct xm_infer *base, xm_step_check_fn fn, void *ctx, struct xm_error *err)
{
    struct gpu_infer *r = (struct gpu_infer *)base;
    xm_step_checker_destroy(r->checker);
    r->checker = NULL;
    return xm_step_checker_create(r->request, fn, ctx, &r->checker, err);
}

/* If runs were not measured, does as OpenVINO's plugins: GPU fails, CPU reports the names of the
 * steps without times. */
static enum xm_status
profile_rows(struct xm_infer *r, xm_profile_row_fn fn, void *ctx, struct xm_error *err)
{
    const struct xm_gpu_compiled *c = xm_gpu_compiled_of(r->compiled);
    if (xm_request_is_measured(request_of(r)) || strcmp(c->plugin, "CPU") != 0)
        return xm_request_profile(request_of(r), fn, ctx, err);
    xm_request_name_steps(request_of(r), fn, ctx);
    return XM_OK;
}

static void
profile_reset(struct xm_infer *r)
{
    xm_request_reset_profile(request_of(r));
}

static enum xm_status
profile_begin_trace(struct xm_infer *r, struct xm_error *err)
{
    return xm_request_begin_trace(request_of(r), err);
}

static enum xm_status
profile_trace(struct xm_infer *r, xm_trace_row_fn fn, void *ctx, uint64_t *dropped,
              struct xm_error *err)
{
    return xm_request_trace(request_of(r), fn, ctx, dropped, err);
}

static const struct xm_profile_ops profile_ops = {
    .rows = profile_rows,
    .reset = profile_reset,
    .begin_trace = profile_begin_trace,
    .trace = profile_trace,
};

static void
infer_destroy(struct xm_infer *base)
{
    struct gpu_infer *r = (struct gpu_infer *)base;
    xm_step_checker_destroy(r->checker);
    xm_request_destroy(r->request);
    xm_free(r);
}

static const struct xm_infer_ops infer_ops = {
    .set_input = infer_set_input,
    .infer = infer_run,
    .output = infer_output,
    .set_remote_input = infer_set_remote_input,
    .set_remote_output = infer_set_remote_output,
    .describe_output = infer_describe_output,
    .reset = infer_reset,
    .truncate = infer_truncate,
    .past = infer_past,
    .cancel = infer_cancel,
    .resume = infer_resume,
    .watch = infer_watch,
    .stats = infer_stats,
    .check = infer_check,
    .destroy = infer_destroy,
    .profile = &profile_ops,
};

enum xm_status
xm_gpu_create_request(struct xm_compiled *c, struct xm_infer **out, struct xm_error *err)
{
    struct gpu_infer *r = xm_calloc(1, sizeof(*r));
    if (!r)
        return xm_no_memory(err, "a request");
    enum xm_status s =
        xm_request_create(xm_gpu_compiled_of(c)->program, &r->request, err);
    if (s != XM_OK) {
        xm_free(r);
        return s;
    }
    r->base.ops = &infer_ops;
    *out = &r->base;
    return XM_OK;
}

/* ---- sequences ---- */

struct gpu_sequence {
    struct xm_sequence base; /* first */
    struct xm_kv_sequence *kv;
};

static struct xm_kv_sequence *
kv_of(const struct xm_sequence *s)
{
    return ((const struct gpu_sequence *)s)->kv;
}

static enum xm_status wrap_sequence(struct xm_kv_sequence *kv, struct xm_sequence **out,
                                    struct xm_error *err);

static enum xm_status
sequence_fork(struct xm_sequence *s, struct xm_sequence **out, struct xm_error *err)
{
    struct xm_kv_sequence *kv = NULL;
    XM_TRY(xm_kv_sequence_fork(kv_of(s), &kv, err));
    return wrap_sequence(kv, out, err);
}

static uint64_t
sequence_past(const struct xm_sequence *s)
{
    return xm_kv_sequence_past(kv_of(s));
}

static void
sequence_truncate(struct xm_sequence *s, uint64_t past)
{
    xm_kv_sequence_truncate(kv_of(s), past);
}

static enum xm_status
sequence_match(struct xm_sequence *s, const int32_t *tokens, uint64_t n,
               struct xm_error *err)
{
    return xm_kv_sequence_match(kv_of(s), tokens, n, err);
}

static void
sequence_destroy(struct xm_sequence *s)
{
    xm_kv_sequence_destroy(kv_of(s));
    xm_free(s);
}

static enum xm_status
sequence_identify(const struct xm_sequence *s, struct xm_strbuf *out,
                  struct xm_error *err)
{
    const struct xm_program *p = xm_gpu_compiled_of(s->compiled)->program;
    if (!p->graph)
        return xm_fail(err, XM_UNSUPPORTED,
                       "sequences cannot be saved, because the compiled model has not "
                       "kept its graph");
    const char *variable = xm_model_cache_obstacle();
    if (variable)
        return xm_fail(err, XM_UNSUPPORTED,
                       "sequences cannot be saved while %s is set, because later runs "
                       "could take the positions for those of the unchanged model",
                       variable);
    xm_model_cache_identify(p->graph, &p->config, xm_engine_info(p->engine),
                            "sequence 2\n", out);
    return xm_strbuf_ok(out) ? XM_OK : xm_no_memory(err, "the text of a graph");
}

static uint64_t
sequence_page(const struct xm_sequence *s)
{
    return xm_gpu_compiled_of(s->compiled)->program->config.kv_block_tokens;
}

static uint64_t
sequence_bytes(const struct xm_sequence *s)
{
    return xm_kv_file_bytes(kv_of(s));
}

static uint64_t
sequence_least(const struct xm_sequence *s)
{
    return xm_kv_file_least(kv_of(s));
}

static enum xm_status
sequence_save(const struct xm_sequence *s, const struct xm_export *to,
              struct xm_error *err)
{
    const struct xm_kv_sink sink = {to->write, to->ctx};
    return xm_kv_file_write(kv_of(s), &sink, err);
}

static enum xm_status
sequence_load(struct xm_sequence *s, const int32_t *ids, uint64_t n, const uint8_t *bytes,
              uint64_t n_bytes, struct xm_error *err)
{
    return xm_kv_file_read(kv_of(s), ids, n, bytes, n_bytes, err);
}

static const struct xm_sequence_file_ops sequence_file_ops = {
    .identify = sequence_identify,
    .page = sequence_page,
    .bytes = sequence_bytes,
    .least = sequence_least,
    .save = sequence_save,
    .load = sequence_load,
};

static const struct xm_sequence_ops sequence_ops = {
    .fork = sequence_fork,
    .past = sequence_past,
    .truncate = sequence_truncate,
    .match = sequence_match,
    .destroy = sequence_destroy,
    .file = &sequence_file_ops,
};

/* Creates a sequence of the plugin interface, which owns kv from now on. Destroys kv on failure. */
static enum xm_status
wrap_sequence(struct xm_kv_sequence *kv, struct xm_sequence **out, struct xm_error *err)
{
    struct gpu_sequence *s = xm_calloc(1, sizeof(*s));
    if (!s) {
        xm_kv_sequence_destroy(kv);
        return xm_no_memory(err, "a sequence");
    }
    s->base.ops = &sequence_ops;
    s->kv = kv;
    *out = &s->base;
    return XM_OK;
}

enum xm_status
xm_gpu_create_sequence(struct xm_compiled *c, struct xm_sequence **out,
                       struct xm_error *err)
{
    const struct xm_program *p = xm_gpu_compiled_of(c)->program;
    struct xm_kv_sequence *kv = NULL;
    if (!p->kv_pool || p->host_states)
        return xm_fail(err, XM_UNSUPPORTED,
                       "the model has no KV cache that sequences could hold");
    XM_TRY(xm_kv_sequence_create(p->kv_pool, &kv, err));
    return wrap_sequence(kv, out, err);
}

/* ---- batches ---- */

struct gpu_batch {
    struct xm_batch base;     /* first */
    struct gpu_infer control; /* gives access to the batcher's request */
    struct xm_batcher *batcher;
    struct xm_batcher_entry *entries;  /* [capacity] */
    struct xm_kv_sequence **sequences; /* [capacity] */
    uint32_t capacity;
};

static enum xm_status
reserve_entries(struct gpu_batch *b, uint32_t n, struct xm_error *err)
{
    if (n <= b->capacity)
        return XM_OK;
    void *entries = xm_realloc(b->entries, n * sizeof(*b->entries));
    b->entries = entries ? entries : b->entries;
    void *sequences = xm_realloc(b->sequences, n * sizeof(*b->sequences));
    b->sequences = sequences ? sequences : b->sequences;
    if (!entries || !sequences)
        return xm_no_memory(err, "a batch");
    b->capacity = n;
    return XM_OK;
}

static enum xm_status
batch_run(struct xm_batch *base, const struct xm_batch_row *rows, uint32_t n,
          struct xm_error *err)
{
    struct gpu_batch *b = (struct gpu_batch *)base;
    XM_TRY(reserve_entries(b, n, err));
    for (uint32_t i = 0; i < n; i++) {
        const struct xm_batch_row *row = &rows[i];
        if (row->sequence->compiled != base->compiled)
            return xm_fail(err, XM_INVALID,
                           "row %u of the batch: the sequence belongs to another model",
                           i);
        b->entries[i] = (struct xm_batcher_entry){kv_of(row->sequence), row->ids, row->n,
                                                  row->wanted};
    }
    const enum xm_status s = xm_batcher_run(b->batcher, b->entries, n, err);
    base->n_rows = s == XM_OK ? n : 0;
    return s;
}

static const float *
batch_logits(const struct xm_batch *b, uint32_t i, uint64_t *rows, uint64_t *vocabulary)
{
    return xm_batcher_logits(((const struct gpu_batch *)b)->batcher, i, rows, vocabulary);
}

static void
batch_prepare(struct xm_batch *base, const struct xm_token_choice *how)
{
    xm_batcher_prepare(((struct gpu_batch *)base)->batcher, how, NULL);
}

static enum xm_status
batch_choose(struct xm_batch *base, struct xm_device_choices *c, struct xm_error *err)
{
    struct gpu_batch *b = (struct gpu_batch *)base;
    XM_TRY(reserve_entries(b, c->n, err));
    for (uint32_t i = 0; i < c->n; i++)
        b->sequences[i] = kv_of(c->list[i].sequence);
    const enum xm_status status = xm_batcher_choose(b->batcher, b->sequences, c, err);
    base->n_rows = status == XM_UNSUPPORTED ? base->n_rows : 0;
    return status;
}

static void
batch_stop(struct xm_batch *base, const struct xm_sequence *s)
{
    xm_batcher_stop(((struct gpu_batch *)base)->batcher,
                    s ? ((const struct gpu_sequence *)s)->kv : NULL);
}

static void
batch_destroy(struct xm_batch *base)
{
    struct gpu_batch *b = (struct gpu_batch *)base;
    xm_step_checker_destroy(b->control.checker);
    xm_batcher_destroy(b->batcher);
    xm_free(b->entries);
    xm_free(b->sequences);
    xm_free(b);
}

static const struct xm_batch_ops batch_ops = {
    .run = batch_run,
    .logits = batch_logits,
    .prepare = batch_prepare,
    .choose = batch_choose,
    .stop = batch_stop,
    .destroy = batch_destroy,
};

/* The operations on a batch's request, which only the batch runs. */
static const struct xm_infer_ops control_ops = {
    .cancel = infer_cancel,
    .resume = infer_resume,
    .watch = infer_watch,
    .stats = infer_stats,
    .check = infer_check,
    .profile = &profile_ops,
};

enum xm_status
xm_gpu_create_batch(struct xm_compiled *c, struct xm_batch **out, struct xm_error *err)
{
    struct gpu_batch *b = xm_calloc(1, sizeof(*b));
    if (!b)
        return xm_no_memory(err, "a batch");
    struct xm_program *program = xm_gpu_compiled_of(c)->program;
    enum xm_status s = xm_batcher_create(program, &b->batcher, err);
    if (s != XM_OK) {
        xm_free(b);
        return s;
    }
    b->control.base.ops = &control_ops;
    b->control.request = xm_batcher_request(b->batcher);
    b->base.ops = &batch_ops;
    b->base.control = &b->control.base;
    b->base.chunk = xm_intake_chunk_tokens(program);
    b->base.page = program->config.kv_block_tokens;
    *out = &b->base;
    return XM_OK;
}
