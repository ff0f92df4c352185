/* SPDX-License-Identifier: Apache-2.0 */
#include "primitives/tuning.h"

#include <assert.h>

/* A row that takes more than this multiple of the fastest row's time is not timed again. */
#define HOPELESS 1.5
/* A row counts as better than the usual one if it takes at most this fraction of its time. */
#define BETTER 0.97

bool
xm_tuning_takes(const struct xm_variant *row, const struct xm_device_info *device)
{
    struct xm_variant any_problem = *row;
    any_problem.refuses = NULL;
    return !xm_variant_refusal(&any_problem, device, NULL) &&
           !xm_variant_drawback(row, device);
}

/* Returns the row with the least time; table->n: none was timed. */
static size_t
fastest(const struct xm_variant_table *table, const struct xm_timed_rows *rows)
{
    size_t best = table->n;
    for (size_t i = 0; i < table->n; i++) {
        if (rows->seconds[i] > 0 &&
            (best == table->n || rows->seconds[i] < rows->seconds[best]))
            best = i;
    }
    return best;
}

static enum xm_status
time_row(const struct xm_variant_table *table, size_t row, xm_row_time_fn time, void *ctx,
         struct xm_timed_rows *out, struct xm_error *err)
{
    struct xm_error why = {0};
    const size_t best = fastest(table, out);
    const double hopeless = best < table->n ? HOPELESS * out->seconds[best] : 0;
    double seconds = 0, *least = &out->seconds[row];
    const enum xm_status s = time(ctx, table, row, hopeless, &seconds, &why);
    if (s == XM_UNSUPPORTED || s == XM_NOT_BUILT)
        return XM_OK;
    if (s != XM_OK)
        return xm_fail(err, s, "%s", why.text);
    if (seconds > 0 && (*least == 0 || seconds < *least))
        *least = seconds;
    return XM_OK;
}

static bool
is_reference(const struct xm_variant *row)
{
    return row->family == XM_FAMILY_ANY;
}

/* Times each row once; the reference only if no other row can run. */
static enum xm_status
time_all(const struct xm_variant_table *table, const struct xm_device_info *device,
         xm_row_time_fn time, void *ctx, struct xm_timed_rows *out, struct xm_error *err)
{
    for (int reference = 0; reference < 2; reference++) {
        for (size_t i = 0; i < table->n; i++) {
            if (is_reference(&table->rows[i]) == (reference == 1) &&
                xm_tuning_takes(&table->rows[i], device))
                XM_TRY(time_row(table, i, time, ctx, out, err));
        }
        if (fastest(table, out) < table->n)
            return XM_OK;
    }
    return xm_fail(err, XM_UNSUPPORTED, "%s: no kernel can be timed", table->step);
}

/* Returns the fastest row if its lead over the usual one counts, else the usual one. */
static size_t
better(const struct xm_variant_table *table, const struct xm_timed_rows *rows)
{
    const size_t best = fastest(table, rows);
    return rows->seconds[best] > BETTER * rows->seconds[rows->usual] ? rows->usual : best;
}

enum xm_status
xm_tune_table(const struct xm_variant_table *table, const struct xm_device_info *device,
              xm_row_time_fn time, void *ctx, struct xm_timed_rows *out,
              struct xm_error *err)
{
    assert(table->n <= XM_TABLE_ROWS);
    *out = (struct xm_timed_rows){.usual = 0};
    XM_TRY(time_all(table, device, time, ctx, out, err));
    const double worth = HOPELESS * out->seconds[fastest(table, out)];
    while (out->seconds[out->usual] == 0)
        out->usual++;
    for (size_t i = 0; i < table->n; i++) {
        if (out->seconds[i] > 0 && (out->seconds[i] <= worth || i == out->usual))
            XM_TRY(time_row(table, i, time, ctx, out, err));
    }
    out->best = better(table, out);
    if (out->best != out->usual) {
        XM_TRY(time_row(table, out->usual, time, ctx, out, err));
        XM_TRY(time_row(table, out->best, time, ctx, out, err));
        out->best = better(table, out);
    }
    return XM_OK;
}
