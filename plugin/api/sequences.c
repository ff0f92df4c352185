/* SPDX-License-Identifier: Apache-2.0
 *
 * Sequences and batches: checks, and straight into the plugin.
 */
#include <stdatomic.h>

#include "plugin/api/api.h"
#include "plugin/gpu/batcher.h"
#include "xemoe/xemoe.h"

struct xm_sequence {
    struct xm_compiled *compiled; /* referenced: the pool is its program's */
    struct xm_kv_sequence *kv;
};

struct xm_batch {
    struct xm_compiled *compiled; /* referenced */
    struct xm_batcher *batcher;
    atomic_bool is_running;
};

/* What has not been created: a model that can have none is no other failure. */
static ov_status_e
refuse(const struct xm_error *err)
{
    const ov_status_e s = xm_api_error(err);
    return err->status == XM_UNSUPPORTED ? NOT_IMPLEMENTED : s;
}

/* ---- sequences --------------------------------------------------------------------- */

static ov_status_e
wrap(struct xm_compiled *c, struct xm_kv_sequence *kv, xm_sequence_t **out)
{
    xm_sequence_t *s = xm_calloc(1, sizeof(*s));
    if (!s) {
        xm_kv_sequence_destroy(kv);
        return xm_api_fail(GENERAL_ERROR, "out of memory for a sequence");
    }
    s->compiled = c;
    s->kv = kv;
    xm_compiled_ref(c);
    *out = s;
    return OK;
}

ov_status_e
xm_sequence_create(const ov_compiled_model_t *compiled_model, xm_sequence_t **sequence)
{
    if (!compiled_model || !sequence)
        return INVALID_C_PARAM;
    struct xm_compiled *c = compiled_model->compiled;
    struct xm_kv_sequence *kv = NULL;
    struct xm_error err = {0};
    if (!c->ops->create_sequence)
        return xm_api_fail(NOT_IMPLEMENTED, "this device has no sequences");
    if (c->ops->create_sequence(c, &kv, &err) != XM_OK)
        return refuse(&err);
    return wrap(c, kv, sequence);
}

ov_status_e
xm_sequence_fork(const xm_sequence_t *sequence, xm_sequence_t **fork)
{
    if (!sequence || !fork)
        return INVALID_C_PARAM;
    struct xm_kv_sequence *kv = NULL;
    struct xm_error err = {0};
    if (xm_kv_sequence_fork(sequence->kv, &kv, &err) != XM_OK)
        return xm_api_error(&err);
    return wrap(sequence->compiled, kv, fork);
}

void
xm_sequence_free(xm_sequence_t *sequence)
{
    if (!sequence)
        return;
    xm_kv_sequence_destroy(sequence->kv);
    xm_compiled_unref(sequence->compiled);
    xm_free(sequence);
}

ov_status_e
xm_sequence_length(const xm_sequence_t *sequence, size_t *length)
{
    if (!sequence || !length)
        return INVALID_C_PARAM;
    *length = xm_kv_sequence_past(sequence->kv);
    return OK;
}

ov_status_e
xm_sequence_truncate(xm_sequence_t *sequence, size_t length, size_t *kept)
{
    if (!sequence)
        return INVALID_C_PARAM;
    xm_kv_sequence_truncate(sequence->kv, length);
    if (kept)
        *kept = xm_kv_sequence_past(sequence->kv);
    return OK;
}

ov_status_e
xm_sequence_match(xm_sequence_t *sequence, const int32_t *tokens, size_t n, size_t *found)
{
    if (!sequence || (!tokens && n) || !found)
        return INVALID_C_PARAM;
    struct xm_error err = {0};
    if (xm_kv_sequence_past(sequence->kv))
        return xm_api_fail(PARAMETER_MISMATCH,
                           "a sequence that holds tokens takes over no others");
    if (xm_kv_sequence_match(sequence->kv, tokens, n, &err) != XM_OK)
        return xm_api_error(&err);
    *found = xm_kv_sequence_past(sequence->kv);
    return OK;
}

/* ---- runs -------------------------------------------------------------------------- */

ov_status_e
xm_batch_create(const ov_compiled_model_t *compiled_model, xm_batch_t **batch)
{
    if (!compiled_model || !batch)
        return INVALID_C_PARAM;
    struct xm_compiled *c = compiled_model->compiled;
    struct xm_error err = {0};
    if (!c->ops->create_batcher)
        return xm_api_fail(NOT_IMPLEMENTED, "this device has no sequences");
    xm_batch_t *b = xm_calloc(1, sizeof(*b));
    if (!b)
        return xm_api_fail(GENERAL_ERROR, "out of memory for a batch");
    if (c->ops->create_batcher(c, &b->batcher, &err) != XM_OK) {
        xm_free(b);
        return refuse(&err);
    }
    b->compiled = c;
    xm_compiled_ref(c);
    *batch = b;
    return OK;
}

void
xm_batch_free(xm_batch_t *batch)
{
    if (!batch)
        return;
    xm_batcher_destroy(batch->batcher);
    xm_compiled_unref(batch->compiled);
    xm_free(batch);
}

/* The entries as the plugin has them; NULL: one is not right, and *status says so. */
static struct xm_batcher_entry *
take_entries(const xm_batch_t *batch, const xm_batch_entry_t *entries, size_t n,
             ov_status_e *status)
{
    struct xm_batcher_entry *list = xm_calloc(n, sizeof(*list));
    *status = OK;
    if (!list)
        *status = xm_api_fail(GENERAL_ERROR, "out of memory for a batch");
    for (size_t i = 0; i < n && *status == OK; i++) {
        const xm_batch_entry_t *e = &entries[i];
        if (!e->sequence || !e->tokens)
            *status = INVALID_C_PARAM;
        else if (e->sequence->compiled != batch->compiled)
            *status = xm_api_fail(PARAMETER_MISMATCH,
                                  "entry %zu: the sequence is another model's", i);
        else
            list[i] = (struct xm_batcher_entry){e->sequence->kv, e->tokens, e->n_tokens,
                                                e->n_wanted};
    }
    if (*status == OK)
        return list;
    xm_free(list);
    return NULL;
}

ov_status_e
xm_batch_run(xm_batch_t *batch, const xm_batch_entry_t *entries, size_t n_entries)
{
    if (!batch || !entries || n_entries == 0 || n_entries > UINT32_MAX)
        return INVALID_C_PARAM;
    ov_status_e status;
    struct xm_error err = {0};
    struct xm_batcher_entry *list = take_entries(batch, entries, n_entries, &status);
    if (!list)
        return status;
    struct xm_request *r = xm_batcher_request(batch->batcher);
    xm_request_resume(r);
    atomic_store(&batch->is_running, true);
    const enum xm_status s =
        xm_batcher_run(batch->batcher, list, (uint32_t)n_entries, &err);
    atomic_store(&batch->is_running, false);
    xm_free(list);
    return s == XM_OK ? OK : xm_api_error(&err);
}

ov_status_e
xm_batch_logits(const xm_batch_t *batch, size_t i, const float **logits, size_t *rows,
                size_t *vocabulary)
{
    if (!batch || !logits || !rows || !vocabulary || i > UINT32_MAX)
        return INVALID_C_PARAM;
    uint64_t n, width;
    *logits = xm_batcher_logits(batch->batcher, (uint32_t)i, &n, &width);
    *rows = n;
    *vocabulary = width;
    return OK;
}

ov_status_e
xm_batch_cancel(xm_batch_t *batch)
{
    if (!batch)
        return INVALID_C_PARAM;
    if (atomic_load(&batch->is_running))
        xm_request_cancel(xm_batcher_request(batch->batcher));
    return OK;
}
