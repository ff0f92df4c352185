/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe verify --numerics: compares the logits with rounding to bf16 as in training (XM_NUMERICS)
 * with those of the same model without it.
 */
#include <string.h>

#include "plugin/cli/verify.h"
#include "plugin/pipeline/token_runner.h"
#include "plugin/program_util/progress.h"
#include "runtime/util/number.h"

/* Computes the logits of all positions; the caller frees them with xm_other_logits_free. */
static enum xm_status
run_f32(const struct xm_cli_model *m, const struct xm_token_list *ids,
        struct xm_other_logits *out, struct xm_error *err)
{
    struct xm_token_runner *r = NULL;
    uint64_t rows, vocabulary, bytes;
    XM_TRY(xm_token_runner_create(m->compiled, &r, err));
    xm_cli_catch_interrupt(xm_token_runner_request(r));
    xm_progress_show("reading %zu token%s in f32", ids->n, xm_plural(ids->n));
    enum xm_status s = xm_token_runner_feed(r, ids->ids, ids->n, ids->n, err);
    xm_cli_release_interrupt();
    xm_progress_clear();
    const float *logits = xm_token_runner_logits(r, &rows, &vocabulary);
    float *copy = NULL;
    if (s == XM_OK && xm_mul_size(rows * vocabulary, sizeof(*copy), &bytes))
        copy = xm_malloc((size_t)bytes);
    if (s == XM_OK && !copy)
        s = xm_no_memory(err, "logits");
    if (s == XM_OK) {
        memcpy(copy, logits, (size_t)bytes);
        out->rows = (struct xm_npy_floats){rows, vocabulary, copy};
    }
    xm_token_runner_destroy(r);
    return s;
}

int
xm_verify_numerics(struct xm_cli_model *m, const struct xm_cli_target *t,
                   const struct xm_token_list *ids)
{
    struct xm_error err = {0};
    struct xm_other_logits f32 = {.path = t->model, .is_f32 = true};
    struct xm_cli_target rounded = *t;
    rounded.numerics = "bf16";
    if (run_f32(m, ids, &f32, &err) != XM_OK)
        return xm_cli_failed(&err);
    /* before opening the other, so that only one needs memory for weights */
    xm_cli_model_close(m);
    int code = xm_cli_model_open(m, &rounded, NULL);
    if (code == XM_EXIT_OK)
        code = xm_verify_against(m, &f32, ids, t->json);
    xm_other_logits_free(&f32);
    return code;
}
