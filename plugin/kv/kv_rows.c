/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/kv/kv_rows.h"

#include "runtime/util/memory.h"

void
xm_kv_rows_init(struct xm_kv_rows *r, struct xm_kv_pool *pool)
{
    *r = (struct xm_kv_rows){.pool = pool};
}

static bool
is_in(const struct xm_kv_sequence *s, struct xm_kv_sequence *const *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (list[i] == s)
            return true;
    }
    return false;
}

/* Frees the list and destroys its sequences, except those that are also in `others`. */
static void
free_list(struct xm_kv_sequence **list, uint32_t n, struct xm_kv_sequence *const *others,
          uint32_t n_others)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!is_in(list[i], others, n_others))
            xm_kv_sequence_destroy(list[i]);
    }
    xm_free(list);
}

void
xm_kv_rows_free(struct xm_kv_rows *r)
{
    xm_kv_rows_end(r, true);
    free_list(r->list, r->n, NULL, 0);
    *r = (struct xm_kv_rows){.pool = r->pool};
}

uint64_t
xm_kv_rows_past(const struct xm_kv_rows *r)
{
    return r->n ? xm_kv_sequence_padding(r->list[0]) + xm_kv_sequence_past(r->list[0])
                : 0;
}

void
xm_kv_rows_reset(struct xm_kv_rows *r)
{
    xm_kv_rows_free(r);
}

/* Truncates a row to `past` positions, padding included. Returns false if it has fewer afterwards,
 * because the sequence had to drop all of them. */
static bool
truncate_row(struct xm_kv_sequence *s, uint64_t past)
{
    const uint64_t padding = xm_kv_sequence_padding(s);
    if (past < padding)
        xm_kv_sequence_set_padding(s, past);
    xm_kv_sequence_truncate(s, past > padding ? past - padding : 0);
    return xm_kv_sequence_padding(s) + xm_kv_sequence_past(s) == past;
}

void
xm_kv_rows_truncate(struct xm_kv_rows *r, uint64_t past)
{
    bool is_whole = true;
    for (uint32_t i = 0; i < r->n; i++)
        is_whole &= truncate_row(r->list[i], past);
    if (!is_whole)
        xm_kv_rows_reset(r);
}

/* ---- a run --------------------------------------------------------------------------- */

static enum xm_status
check_beams(const struct xm_kv_rows *r, uint32_t batch, const int32_t *beam_idx,
            struct xm_error *err)
{
    for (uint32_t b = 0; b < batch; b++) {
        const int64_t from = beam_idx ? beam_idx[b] : (int64_t)b;
        if (from < 0 || from >= (int64_t)r->n)
            return xm_fail(
                err, XM_INVALID,
                "sequence %u continues state row %lld, but the state holds %u rows", b,
                (long long)from, r->n);
    }
    return XM_OK;
}

static bool
is_identity(const struct xm_kv_rows *r, uint32_t batch, const int32_t *beam_idx)
{
    bool same = batch == r->n;
    for (uint32_t b = 0; beam_idx && b < batch; b++)
        same &= beam_idx[b] == (int32_t)b;
    return same;
}

/* Sets row b of the new list to continue sequence s: the first row that continues s gets s itself,
 * each later row a fork of s. */
static enum xm_status
continue_row(struct xm_kv_sequence *s, struct xm_kv_sequence **list, uint32_t b,
             struct xm_error *err)
{
    if (is_in(s, list, b))
        return xm_kv_sequence_fork(s, &list[b], err);
    list[b] = s;
    return XM_OK;
}

/* Replaces the rows by `batch` rows that continue them as beam_idx says. The old rows are kept in
 * r->before until the run ends. */
static enum xm_status
replace_rows(struct xm_kv_rows *r, uint32_t batch, const int32_t *beam_idx,
             struct xm_error *err)
{
    const bool is_empty = xm_kv_rows_past(r) == 0;
    struct xm_kv_sequence **list =
        xm_calloc((size_t)batch, sizeof(struct xm_kv_sequence *));
    if (!list)
        return xm_no_memory(err, "%u sequences", batch);
    enum xm_status s = XM_OK;
    uint32_t b = 0;
    for (; b < batch && s == XM_OK; b++) {
        if (is_empty)
            s = xm_kv_sequence_create(r->pool, &list[b], err);
        else
            s = continue_row(r->list[beam_idx ? (uint32_t)beam_idx[b] : b], list, b, err);
    }
    if (s != XM_OK) {
        free_list(list, b - 1, r->list, r->n);
        return s;
    }
    r->before = r->list;
    r->n_before = r->n;
    r->list = list;
    r->n = batch;
    r->has_others = true;
    return XM_OK;
}

enum xm_status
xm_kv_rows_begin(struct xm_kv_rows *r, uint32_t batch, const int32_t *beam_idx,
                 struct xm_error *err)
{
    if (batch == 0)
        return xm_fail(err, XM_INVALID, "a run of no sequences");
    const bool is_empty = xm_kv_rows_past(r) == 0;
    if (!is_empty)
        XM_TRY(check_beams(r, batch, beam_idx, err));
    const bool same = is_empty ? batch == r->n : is_identity(r, batch, beam_idx);
    return same ? XM_OK : replace_rows(r, batch, beam_idx, err);
}

void
xm_kv_rows_end(struct xm_kv_rows *r, bool keep)
{
    if (!r->has_others)
        return;
    if (keep) {
        free_list(r->before, r->n_before, r->list, r->n);
    } else {
        free_list(r->list, r->n, r->before, r->n_before);
        r->list = r->before;
        r->n = r->n_before;
    }
    r->before = NULL;
    r->n_before = 0;
    r->has_others = false;
}
