/* SPDX-License-Identifier: Apache-2.0
 *
 * Sequences and batches: check arguments and call the plugin.
 */
#include "plugin/api/api.h"
#include "xemoe/xemoe.h"

/* Returns the status of a failed creation: NOT_IMPLEMENTED if the model cannot have sequences. */
static ov_status_e
refuse(const struct xm_error *err)
{
    const ov_status_e s = xm_api_error(err);
    return err->status == XM_UNSUPPORTED ? NOT_IMPLEMENTED : s;
}

/* ---- sequences --------------------------------------------------------------------- */

static ov_status_e
give_sequence(xm_sequence_t *created, xm_sequence_t **out)
{
    const ov_status_e s = xm_api_new_handle(created, XM_API_SEQUENCE);
    if (s == OK)
        *out = created;
    else
        xm_compiled_destroy_sequence(created);
    return s;
}

ov_status_e
xm_sequence_create(const ov_compiled_model_t *compiled_model, xm_sequence_t **sequence)
{
    if (!xm_api_is(compiled_model, XM_API_COMPILED) || !sequence)
        return xm_api_refuse(__func__);
    struct xm_error err = {0};
    xm_sequence_t *created = NULL;
    return xm_compiled_create_sequence(compiled_model->compiled, &created, &err) == XM_OK
               ? give_sequence(created, sequence)
               : refuse(&err);
}

ov_status_e
xm_sequence_fork(const xm_sequence_t *sequence, xm_sequence_t **fork)
{
    if (!xm_api_is(sequence, XM_API_SEQUENCE) || !fork)
        return xm_api_refuse(__func__);
    struct xm_error err = {0};
    xm_sequence_t *created = NULL;
    return xm_compiled_fork_sequence((xm_sequence_t *)sequence, &created, &err) == XM_OK
               ? give_sequence(created, fork)
               : xm_api_error(&err);
}

void
xm_sequence_free(xm_sequence_t *sequence)
{
    if (xm_api_handle_drop(sequence, XM_API_SEQUENCE))
        xm_compiled_destroy_sequence(sequence);
}

ov_status_e
xm_sequence_length(const xm_sequence_t *sequence, size_t *length)
{
    if (!xm_api_is(sequence, XM_API_SEQUENCE) || !length)
        return xm_api_refuse(__func__);
    *length = sequence->ops->past(sequence);
    return OK;
}

ov_status_e
xm_sequence_truncate(xm_sequence_t *sequence, size_t length, size_t *kept)
{
    if (!xm_api_is(sequence, XM_API_SEQUENCE))
        return xm_api_refuse(__func__);
    sequence->ops->truncate(sequence, length);
    if (kept)
        *kept = sequence->ops->past(sequence);
    return OK;
}

ov_status_e
xm_sequence_match(xm_sequence_t *sequence, const int32_t *tokens, size_t n, size_t *found)
{
    if (!xm_api_is(sequence, XM_API_SEQUENCE) || (!tokens && n) || !found)
        return xm_api_refuse(__func__);
    struct xm_error err = {0};
    if (sequence->ops->past(sequence))
        return xm_api_fail(PARAMETER_MISMATCH,
                           "only an empty sequence can take over cached tokens");
    if (sequence->ops->match(sequence, tokens, n, &err) != XM_OK)
        return xm_api_error(&err);
    *found = sequence->ops->past(sequence);
    return OK;
}

/* ---- runs -------------------------------------------------------------------------- */

ov_status_e
xm_batch_create(const ov_compiled_model_t *compiled_model, xm_batch_t **batch)
{
    if (!xm_api_is(compiled_model, XM_API_COMPILED) || !batch)
        return xm_api_refuse(__func__);
    struct xm_error err = {0};
    xm_batch_t *created = NULL;
    if (xm_compiled_create_batch(compiled_model->compiled, &created, &err) != XM_OK)
        return refuse(&err);
    const ov_status_e s = xm_api_new_handle(created, XM_API_BATCH);
    if (s == OK)
        *batch = created;
    else
        xm_compiled_destroy_batch(created);
    return s;
}

void
xm_batch_free(xm_batch_t *batch)
{
    if (xm_api_handle_drop(batch, XM_API_BATCH))
        xm_compiled_destroy_batch(batch);
}

/* Converts the entries for the plugin. NULL: an entry is wrong or memory is missing, and *status
 * says which. */
static struct xm_batch_row *
take_entries(const xm_batch_t *batch, const xm_batch_entry_t *entries, size_t n,
             ov_status_e *status)
{
    struct xm_batch_row *list = xm_calloc(n, sizeof(*list));
    *status = OK;
    if (!list)
        *status = xm_api_fail(GENERAL_ERROR, "out of memory for a batch");
    for (size_t i = 0; i < n && *status == OK; i++) {
        const xm_batch_entry_t *e = &entries[i];
        if (!xm_api_is(e->sequence, XM_API_SEQUENCE) || !e->tokens)
            *status = xm_api_fail(INVALID_C_PARAM, "entry %zu of %zu: its %s", i, n,
                                  e->tokens ? "sequence is not a live handle"
                                            : "tokens are NULL");
        else if (e->sequence->compiled != batch->compiled)
            *status = xm_api_fail(PARAMETER_MISMATCH,
                                  "entry %zu: the sequence belongs to another model", i);
        else
            list[i] =
                (struct xm_batch_row){e->sequence, e->tokens, e->n_tokens, e->n_wanted};
    }
    if (*status == OK)
        return list;
    xm_free(list);
    return NULL;
}

ov_status_e
xm_batch_run(xm_batch_t *batch, const xm_batch_entry_t *entries, size_t n_entries)
{
    if (!xm_api_is(batch, XM_API_BATCH) || !entries || n_entries == 0 ||
        n_entries > UINT32_MAX)
        return xm_api_refuse(__func__);
    ov_status_e status;
    struct xm_error err = {0};
    struct xm_batch_row *list = take_entries(batch, entries, n_entries, &status);
    if (!list)
        return status;
    batch->control->ops->resume(batch->control);
    xm_flag_set(&batch->is_running, true);
    const enum xm_status s = batch->ops->run(batch, list, (uint32_t)n_entries, &err);
    xm_flag_set(&batch->is_running, false);
    xm_free(list);
    return s == XM_OK ? OK : xm_api_error(&err);
}

ov_status_e
xm_batch_logits(const xm_batch_t *batch, size_t i, const float **logits, size_t *rows,
                size_t *vocabulary)
{
    if (!xm_api_is(batch, XM_API_BATCH) || !logits || !rows || !vocabulary)
        return xm_api_refuse(__func__);
    if (i >= batch->n_rows)
        return xm_api_fail(
            OUT_OF_BOUNDS,
            "there are no logits of entry %zu: the batch's last run has %u "
            "entries",
            i, batch->n_rows);
    uint64_t n, width;
    *logits = batch->ops->logits(batch, (uint32_t)i, &n, &width);
    *rows = n;
    *vocabulary = width;
    return OK;
}

ov_status_e
xm_batch_cancel(xm_batch_t *batch)
{
    if (!xm_api_is(batch, XM_API_BATCH))
        return xm_api_refuse(__func__);
    if (xm_flag_get(&batch->is_running))
        batch->control->ops->cancel(batch->control);
    return OK;
}
