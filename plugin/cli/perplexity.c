/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe perplexity: exp of the mean of -log p(token i | tokens before it), i = 1 … n-1, over rows
 * of token ids, each from an empty cache.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "plugin/cli/cli.h"
#include "plugin/cli/json_out.h"
#include "plugin/cli/progress.h"
#include "plugin/pipeline/token_runner.h"

struct args {
    struct xm_cli_target target; /* first: the common options */
    const char *ids;
    uint64_t rows;
};

/* clang-format off */
#define AT(member) offsetof(struct args, member)
static const struct xm_cli_option options[] = {
    { 0,   "ids",  XM_CLI_TEXT,  AT(ids),  "IDS", "@FILE.npy with rows of token ids; @FILE.npy:ROW; 1,2,3" },
    { 0,   "rows", XM_CLI_COUNT, AT(rows), "N",   "only the first N rows" },
};
#undef AT
/* clang-format on */

struct sum {
    double nll;
    uint64_t tokens;
};

/* -log softmax(row)[id], the sum of exponentials in f64. */
static double
row_nll(const float *row, uint64_t n, int32_t id)
{
    double largest = -INFINITY, sum = 0.0;
    for (uint64_t i = 0; i < n; i++)
        largest = fmax(largest, (double)row[i]);
    for (uint64_t i = 0; i < n; i++)
        sum += exp((double)row[i] - largest);
    return log(sum) + largest - (double)row[id];
}

static enum xm_status
add_row(struct xm_token_runner *r, const struct xm_token_list *ids, struct sum *sum,
        struct xm_error *err)
{
    uint64_t rows, vocabulary;
    xm_token_runner_truncate(r, 0);
    XM_TRY(xm_token_runner_feed(r, ids->ids, ids->n, ids->n, err));
    const float *logits = xm_token_runner_logits(r, &rows, &vocabulary);
    for (uint64_t i = 1; i < ids->n && i <= rows; i++) {
        sum->nll += row_nll(logits + (i - 1) * vocabulary, vocabulary, ids->ids[i]);
        sum->tokens++;
    }
    return XM_OK;
}

static enum xm_status
print_result(const struct args *a, const struct sum *sum, struct xm_error *err)
{
    double nll = sum->nll / (double)sum->tokens;
    if (!a->target.json) {
        printf("perplexity %.6f over %" PRIu64 " tokens\n", exp(nll), sum->tokens);
        return XM_OK;
    }
    struct xm_json_out j;
    xm_json_begin(&j);
    xm_json_add_real(&j, NULL, "ppl", exp(nll));
    xm_json_add_real(&j, NULL, "nll", nll);
    xm_json_add_whole(&j, NULL, "tokens", sum->tokens);
    enum xm_status s = xm_json_print(&j, err);
    xm_json_end(&j);
    return s;
}

static enum xm_status
add_rows(const struct xm_cli_model *m, const struct xm_cli_ids *ids, uint64_t n,
         struct sum *sum, struct xm_error *err)
{
    struct xm_token_runner *r = NULL;
    XM_TRY(xm_token_runner_create(m->compiled, &r, err));
    xm_cli_catch_interrupt(xm_token_runner_request(r));
    enum xm_status s = XM_OK;
    for (size_t i = 0; i < n && s == XM_OK; i++) {
        xm_progress_show("row %zu of %" PRIu64, i + 1, n);
        s = xm_cli_interrupted() ? xm_fail(err, XM_CANCELLED, "stopped before row %zu", i)
                                 : add_row(r, &ids->rows[i], sum, err);
    }
    xm_cli_release_interrupt();
    xm_progress_clear();
    xm_token_runner_destroy(r);
    return s;
}

static int
run_model(const struct xm_cli_model *m, const struct args *a)
{
    struct xm_error err = {0};
    struct xm_cli_ids ids = {0};
    struct sum sum = {0};
    int code = xm_cli_ids_read(a->ids, xm_compiled_vocabulary(m->compiled), &ids);
    if (code != XM_EXIT_OK)
        return code;
    uint64_t n = a->rows && a->rows < ids.n ? a->rows : ids.n;
    enum xm_status s = add_rows(m, &ids, n, &sum, &err);
    xm_cli_ids_free(&ids);
    if (s == XM_OK && sum.tokens == 0)
        return xm_cli_usage("perplexity needs a row of two tokens at least");
    if (s == XM_OK)
        s = print_result(a, &sum, &err);
    return s == XM_OK ? xm_cli_flush() : xm_cli_failed(&err);
}

int
xm_cli_perplexity(int argc, char **argv)
{
    static const struct xm_cli_spec spec = {
        .usage = "xemoe perplexity -m PATH --ids @FILE.npy [options]",
        .about =
            "Perplexity of rows of token ids. Each row starts from an empty cache; its\n"
            "first token is only read, the others are predicted.\n",
        .common = xm_cli_target_options,
        .n_common = XM_CLI_N_TARGET_OPTIONS,
        .own = options,
        .n_own = XM_ARRAY_LEN(options),
    };
    struct args a = {0};
    struct xm_cli_model m;
    bool done;
    int code = xm_cli_begin(&spec, argc, argv, &a, &done);
    if (done)
        return code;
    if (!a.ids)
        return xm_cli_usage("which tokens? Give --ids @FILE.npy");
    code = xm_cli_ids_check(a.ids, false);
    if (code == XM_EXIT_OK)
        code = xm_cli_model_open(&m, &a.target, NULL);
    if (code != XM_EXIT_OK)
        return code;
    code = run_model(&m, &a);
    xm_cli_model_close(&m);
    return code;
}
