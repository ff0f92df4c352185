/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe verify --against: compares the logits of a text with those that another program has
 * computed for the same tokens.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plugin/cli/verify.h"
#include "plugin/logits/distribution.h"
#include "plugin/logits/logits_match.h"
#include "plugin/pipeline/token_runner.h"
#include "plugin/program_util/lines.h"
#include "plugin/program_util/progress.h"
#include "runtime/util/mapped_file.h"
#include "runtime/util/number.h"

/* ---- the file ---------------------------------------------------------------------- */

/* Reads raw floats, as causal-verify-logits writes them. */
static enum xm_status
read_raw(const struct xm_mapped_file *f, struct xm_other_logits *out,
         struct xm_error *err)
{
    const uint64_t n = f->n_bytes / sizeof(float);
    if (n == 0 || f->n_bytes % sizeof(float))
        return xm_fail(err, XM_INVALID,
                       "%" PRIu64 " bytes are neither an .npy file nor float32 logits",
                       f->n_bytes);
    out->is_raw = true;
    out->rows = (struct xm_npy_floats){1, n, xm_calloc((size_t)n, sizeof(float))};
    if (!out->rows.data)
        return xm_no_memory(err, "logits");
    memcpy(out->rows.data, f->bytes, (size_t)f->n_bytes);
    return XM_OK;
}

static enum xm_status
check_values(const struct xm_npy_floats *rows, struct xm_error *err)
{
    if (rows->rows == 0 || rows->cols == 0)
        return xm_fail(err, XM_INVALID, "it contains no logits");
    for (uint64_t r = 0; r < rows->rows; r++) {
        const float *row = rows->data + r * rows->cols;
        for (uint64_t i = 0; i < rows->cols; i++) {
            if (isnan(row[i]) || row[i] == INFINITY)
                return xm_fail(err, XM_INVALID,
                               "element %" PRIu64 " of row %" PRIu64 " is %s", i, r,
                               isnan(row[i]) ? "NaN" : "infinite");
        }
        if (!isfinite(row[xm_likeliest(row, rows->cols)]))
            return xm_fail(err, XM_INVALID, "row %" PRIu64 " excludes every token", r);
    }
    return XM_OK;
}

int
xm_other_logits_read(const char *path, struct xm_other_logits *out)
{
    struct xm_mapped_file f = {0};
    struct xm_error err = {0};
    *out = (struct xm_other_logits){.path = path};
    if (xm_mapped_file_open(path, &f, &err) != XM_OK)
        return xm_cli_failed(&err);
    enum xm_status s = xm_npy_is(f.bytes, f.n_bytes)
                           ? xm_npy_read_floats(f.bytes, f.n_bytes, &out->rows, &err)
                           : read_raw(&f, out, &err);
    xm_mapped_file_close(&f);
    if (s == XM_OK)
        s = check_values(&out->rows, &err);
    if (s == XM_OK)
        return XM_EXIT_OK;
    xm_other_logits_free(out);
    xm_error_prefix(&err, "%.150s", path);
    return xm_cli_failed(&err);
}

void
xm_other_logits_free(struct xm_other_logits *o)
{
    xm_npy_floats_free(&o->rows);
}

/* Finds the positions, of `n` tokens, that the file has; a raw file with several rows is
 * reshaped. */
static enum xm_status
fit(struct xm_other_logits *o, uint64_t n, uint64_t vocabulary, struct xm_error *err)
{
    struct xm_npy_floats *rows = &o->rows;
    if (o->is_raw && rows->cols % vocabulary == 0) {
        rows->rows = rows->cols / vocabulary;
        rows->cols = vocabulary;
    }
    if (rows->cols != vocabulary)
        return xm_fail(err, XM_INVALID,
                       "%.150s has logits for a vocabulary of %" PRIu64
                       " tokens, but the model has %" PRIu64,
                       o->path, rows->cols, vocabulary);
    if (rows->rows != n && rows->rows != 1)
        return xm_fail(err, XM_INVALID,
                       "%.150s has logits of %" PRIu64 " positions, but the number of "
                       "given tokens is %" PRIu64,
                       o->path, rows->rows, n);
    return XM_OK;
}

/* ---- comparing ----------------------------------------------------------------------------- */

enum { TOP = 10 };

struct against {
    const struct xm_other_logits *other;
    const float *logits;          /* of the same positions; owned by the runner */
    uint64_t first;               /* index of the first position */
    struct xm_logits_match *list; /* owned; one for each position */
    struct xm_logits_match all;   /* sums over all positions */
    double kld_mean, kld_max;
    uint64_t n_same_top, worst; /* worst: index of the row with the largest error */
};

static const float *
row_of(const struct against *a, const float *rows, uint64_t i)
{
    return rows + i * a->other->rows.cols;
}

static void
compare(struct against *a)
{
    const uint64_t n = a->other->rows.rows;
    for (uint64_t i = 0; i < n; i++) {
        struct xm_logits_match *m = &a->list[i];
        xm_logits_compare(row_of(a, a->logits, i), row_of(a, a->other->rows.data, i),
                          a->other->rows.cols, m);
        a->all.error += m->error;
        a->all.square += m->square;
        a->all.variation += m->variation;
        a->all.largest = fmax(a->all.largest, m->largest);
        a->kld_mean += m->kld / (double)n;
        a->kld_max = fmax(a->kld_max, m->kld);
        a->n_same_top += m->likeliest == m->other_likeliest;
        if (xm_nmse(m) > xm_nmse(&a->list[a->worst]))
            a->worst = i;
    }
}

/* ---- print ------------------------------------------------------------------------- */

static void
print_positions(struct xm_lines *o, const struct against *a)
{
    xm_lines_add(
        o, "position  NMSE mean-removed  sum/sum   difference  KLD        likeliest\n");
    for (uint64_t i = 0; i < a->other->rows.rows; i++) {
        const struct xm_logits_match *m = &a->list[i];
        xm_lines_add(o, "%8" PRIu64 "  %.2e           %.2e  %-10.4g  %9.2e  %" PRIu64,
                     a->first + i, xm_nmse(m), xm_nmse_sum(m), m->largest, m->kld,
                     m->likeliest);
        if (m->likeliest != m->other_likeliest)
            xm_lines_add(o, ", other %" PRIu64, m->other_likeliest);
        xm_lines_add(o, "\n");
    }
}

static void
print_top(struct xm_lines *o, const struct against *a)
{
    uint64_t ours[TOP], theirs[TOP];
    const float *row = row_of(a, a->logits, a->worst);
    const float *other = row_of(a, a->other->rows.data, a->worst);
    const uint64_t n = xm_logits_top(row, a->other->rows.cols, ours, TOP);
    xm_logits_top(other, a->other->rows.cols, theirs, TOP);
    xm_lines_add(o,
                 "likeliest tokens at position %" PRIu64
                 ", which has the largest error:\n         here            other\n",
                 a->first + a->worst);
    for (uint64_t i = 0; i < n; i++)
        xm_lines_add(o, "  %2" PRIu64 "  %6" PRIu64 " %8.4f  %6" PRIu64 " %8.4f\n", i + 1,
                     ours[i], (double)row[ours[i]], theirs[i], (double)other[theirs[i]]);
}

static void
print_places(struct xm_lines *o, uint32_t n)
{
    if (n == 0)
        xm_lines_add(o, "the model has no value that XM_NUMERICS=bf16 rounds\n");
    else
        xm_lines_add(
            o, "%u value%s rounded to bf16 as in training; in the other logits: none\n",
            n, n == 1 ? " is" : "s are");
}

/* Prints the verdict; none for --numerics, where a difference is expected. */
static void
print_verdict(struct xm_lines *o, const struct against *a, double nmse)
{
    if (!a->other->is_f32)
        xm_lines_add(o, ": %s: %s", xm_nmse_label(nmse),
                     xm_nmse_passes(nmse) ? "PASS" : "FAIL");
    xm_lines_add(o, "\n");
}

static void
print_text(const struct xm_cli_model *m, const struct against *a)
{
    const double nmse = xm_nmse(&a->all);
    const uint64_t n = a->other->rows.rows;
    struct xm_lines lines = xm_lines_to(stdout);
    struct xm_strbuf device = {0};
    xm_cli_model_device(m, &device);
    xm_lines_add(&lines, "%s\n", xm_strbuf_text(&device));
    xm_strbuf_free(&device);
    if (a->other->is_f32)
        print_places(&lines, m->compiled->n_rounded);
    print_positions(&lines, a);
    print_top(&lines, a);
    xm_lines_add(&lines,
                 "the likeliest token is the same at %" PRIu64 " of %" PRIu64
                 " positions; KLD %.2e, at most %.2e; largest difference %.4g\nNMSE %.2e "
                 "(sum/sum %.2e)",
                 a->n_same_top, n, a->kld_mean, a->kld_max, a->all.largest, nmse,
                 xm_nmse_sum(&a->all));
    print_verdict(&lines, a, nmse);
    xm_lines_end(&lines);
}

static void
add_positions(struct xm_json_out *j, const struct against *a)
{
    yyjson_mut_val *list = xm_json_add_array(j, NULL, "per_position");
    for (uint64_t i = 0; i < a->other->rows.rows; i++) {
        const struct xm_logits_match *m = &a->list[i];
        yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
        xm_json_add_whole(j, o, "position", a->first + i);
        xm_json_add_real(j, o, "nmse", xm_nmse(m));
        xm_json_add_real(j, o, "nmse_sum", xm_nmse_sum(m));
        xm_json_add_real(j, o, "max_difference", m->largest);
        xm_json_add_real(j, o, "kld", m->kld);
        xm_json_add_whole(j, o, "likeliest", m->likeliest);
        xm_json_add_whole(j, o, "other_likeliest", m->other_likeliest);
    }
}

static void
add_top(struct xm_json_out *j, const char *key, const float *row, uint64_t vocabulary)
{
    uint64_t ids[TOP];
    const uint64_t n = xm_logits_top(row, vocabulary, ids, TOP);
    yyjson_mut_val *list = xm_json_add_array(j, NULL, key);
    for (uint64_t i = 0; i < n; i++) {
        yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
        xm_json_add_whole(j, o, "id", ids[i]);
        xm_json_add_real(j, o, "logit", (double)row[ids[i]]);
    }
}

static enum xm_status
print_json(const struct xm_cli_model *m, const struct against *a, struct xm_error *err)
{
    struct xm_json_out j;
    struct xm_strbuf device = {0};
    const double nmse = xm_nmse(&a->all);
    const char *label = xm_nmse_label(nmse);
    const uint64_t vocabulary = a->other->rows.cols;
    xm_json_begin(&j);
    xm_cli_model_device(m, &device);
    xm_json_add_text(&j, NULL, "device", xm_strbuf_text(&device), device.n);
    xm_strbuf_free(&device);
    if (a->other->is_f32)
        xm_json_add_whole(&j, NULL, "rounded_places", m->compiled->n_rounded);
    xm_json_add_whole(&j, NULL, "positions", a->other->rows.rows);
    xm_json_add_whole(&j, NULL, "vocabulary", vocabulary);
    xm_json_add_real(&j, NULL, "nmse", nmse);
    xm_json_add_real(&j, NULL, "nmse_sum", xm_nmse_sum(&a->all));
    xm_json_add_text(&j, NULL, "label", label, strlen(label));
    xm_json_add_bool(&j, NULL, "pass", xm_nmse_passes(nmse));
    xm_json_add_real(&j, NULL, "max_difference", a->all.largest);
    xm_json_add_real(&j, NULL, "kld_mean", a->kld_mean);
    xm_json_add_real(&j, NULL, "kld_max", a->kld_max);
    xm_json_add_whole(&j, NULL, "same_top", a->n_same_top);
    xm_json_add_whole(&j, NULL, "worst", a->first + a->worst);
    add_top(&j, "worst_top", row_of(a, a->logits, a->worst), vocabulary);
    add_top(&j, "worst_other_top", row_of(a, a->other->rows.data, a->worst), vocabulary);
    add_positions(&j, a);
    enum xm_status s = xm_json_print(&j, err);
    xm_json_end(&j);
    return s;
}

static int
report(const struct xm_cli_model *m, struct against *a, bool json)
{
    struct xm_error err = {0};
    compare(a);
    if (!json)
        print_text(m, a);
    else if (print_json(m, a, &err) != XM_OK)
        return xm_cli_failed(&err);
    const int code = xm_cli_flush();
    const bool is_close = a->other->is_f32 || xm_nmse_passes(xm_nmse(&a->all));
    return code == XM_EXIT_OK && !is_close ? XM_EXIT_FAILED : code;
}

/* ---- the run ----------------------------------------------------------------------- */

static enum xm_status
run(const struct xm_cli_model *m, const struct xm_token_list *ids, uint64_t wanted,
    struct xm_token_runner **r, struct xm_error *err)
{
    XM_TRY(xm_token_runner_create(m->compiled, r, err));
    xm_cli_catch_interrupt(xm_token_runner_request(*r));
    xm_progress_show("reading %zu token%s", ids->n, xm_plural(ids->n));
    const enum xm_status s = xm_token_runner_feed(*r, ids->ids, ids->n, wanted, err);
    xm_cli_release_interrupt();
    xm_progress_clear();
    return s;
}

/* Gets the logits of the positions that the file has. */
static enum xm_status
find_logits(const struct xm_token_runner *r, uint64_t n, struct against *out,
            struct xm_error *err)
{
    uint64_t vocabulary;
    const uint64_t wanted = out->other->rows.rows;
    out->logits = xm_cli_logits_of(r, wanted, &vocabulary, err);
    if (!out->logits)
        return err->status;
    out->first = n - wanted;
    out->list = xm_calloc((size_t)wanted, sizeof(*out->list));
    return out->list ? XM_OK : xm_no_memory(err, "results");
}

int
xm_verify_against(const struct xm_cli_model *m, struct xm_other_logits *other,
                  const struct xm_token_list *ids, bool json)
{
    struct xm_error err = {0};
    struct xm_token_runner *r = NULL;
    struct against a = {.other = other};
    enum xm_status s = fit(other, ids->n, xm_compiled_vocabulary(m->compiled), &err);
    if (s == XM_OK)
        s = run(m, ids, other->rows.rows, &r, &err);
    if (s == XM_OK)
        s = find_logits(r, ids->n, &a, &err);
    const int code = s == XM_OK ? report(m, &a, json) : xm_cli_failed(&err);
    xm_free(a.list);
    xm_token_runner_destroy(r);
    return code;
}
