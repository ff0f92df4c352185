/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe logits: computes the logits of every position of one row of token ids, as f32 [tokens,
 * vocabulary].
 */
#include <inttypes.h>
#include <stdio.h>

#include "plugin/cli/cli.h"
#include "plugin/logits/distribution.h"
#include "plugin/pipeline/token_runner.h"
#include "plugin/program_util/json_out.h"
#include "plugin/program_util/npy.h"
#include "plugin/program_util/progress.h"
#include "runtime/util/number.h"

struct args {
    struct xm_cli_target target; /* first: the common options */
    const char *ids, *out;
};

/* clang-format off */
#define AT(member) offsetof(struct args, member)
static const struct xm_cli_option options[] = {
    XM_CLI_GROUP("The tokens and the result", "xemoe logits model.gguf --ids 1,2,3 -o logits.npy"),
    { 0,   "ids", XM_CLI_WORD, AT(ids), "IDS",  "1,2,3 or @FILE (.npy or text; @FILE.npy:ROW)" },
    XM_CLI_NPY_ROW(AT(out), "the likeliest token of each position"),
};
#undef AT
/* clang-format on */

static enum xm_status
print_json(const float *logits, uint64_t rows, uint64_t cols, struct xm_error *err)
{
    struct xm_json_out j;
    xm_json_begin(&j);
    xm_json_add_whole(&j, NULL, "tokens", rows);
    xm_json_add_whole(&j, NULL, "vocabulary", cols);
    yyjson_mut_val *list = xm_json_add_array(&j, NULL, "likeliest");
    for (uint64_t r = 0; r < rows; r++) {
        uint64_t id = xm_likeliest(logits + r * cols, cols);
        yyjson_mut_val *o = xm_json_add_object(&j, list, NULL);
        xm_json_add_whole(&j, o, "id", id);
        xm_json_add_real(&j, o, "logit", (double)logits[r * cols + id]);
    }
    enum xm_status s = xm_json_print(&j, err);
    xm_json_end(&j);
    return s;
}

static void
print_text(const float *logits, uint64_t rows, uint64_t cols)
{
    for (uint64_t r = 0; r < rows; r++) {
        uint64_t id = xm_likeliest(logits + r * cols, cols);
        printf("%" PRIu64 " %" PRIu64 " %.6g\n", r, id, (double)logits[r * cols + id]);
    }
}

static enum xm_status
write_logits(const struct args *a, const struct xm_token_runner *r, struct xm_error *err)
{
    uint64_t rows, cols;
    const float *logits = xm_token_runner_logits(r, &rows, &cols);
    if (a->out)
        XM_TRY(xm_npy_write(a->out, logits, rows, cols, err));
    if (a->target.json)
        return print_json(logits, rows, cols, err);
    if (!a->out)
        print_text(logits, rows, cols);
    return XM_OK;
}

static int
run_model(const struct xm_cli_model *m, const struct args *a)
{
    struct xm_error err = {0};
    struct xm_token_list ids = {0};
    struct xm_token_runner *r = NULL;
    int code = xm_cli_ids_read_row(a->ids, xm_compiled_vocabulary(m->compiled), &ids);
    if (code != XM_EXIT_OK)
        return code;
    enum xm_status s = xm_token_runner_create(m->compiled, &r, &err);
    if (s == XM_OK) {
        xm_cli_catch_interrupt(xm_token_runner_request(r));
        xm_progress_show("reading %zu token%s", ids.n, xm_plural(ids.n));
        s = xm_token_runner_feed(r, ids.ids, ids.n, ids.n, &err);
        xm_cli_release_interrupt();
        xm_progress_clear();
    }
    if (s == XM_OK)
        s = write_logits(a, r, &err);
    xm_token_runner_destroy(r);
    xm_token_list_free(&ids);
    return s == XM_OK ? xm_cli_flush() : xm_cli_failed(&err);
}

int
xm_cli_logits(int argc, char **argv)
{
    static const struct xm_cli_spec spec = {
        .usage = "xemoe logits MODEL --ids IDS [-o FILE.npy] [options]",
        .about = "Runs token ids through the model from an empty KV cache and writes the "
                 "logits\nof every position: float32, one row per token.\n",
        XM_CLI_TARGET_AND(options),
    };
    struct args a = {0};
    struct xm_cli_model m;
    bool done;
    int code = xm_cli_begin(&spec, argc, argv, &a, &done);
    if (done)
        return code;
    if (!a.ids)
        return xm_cli_usage("which tokens? Give --ids 1,2,3 or --ids @FILE");
    a.target.is_exact = true;
    a.target.check = xm_cli_ids_check_vocabulary;
    a.target.check_ctx = a.ids;
    code = xm_cli_check_npy(a.out);
    if (code == XM_EXIT_OK)
        code = xm_cli_ids_check(a.ids, true);
    if (code == XM_EXIT_OK)
        code = xm_cli_model_open(&m, &a.target, NULL);
    if (code != XM_EXIT_OK)
        return code;
    code = run_model(&m, &a);
    xm_cli_model_close(&m);
    return code;
}
