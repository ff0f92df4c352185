/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe verify: every step on the device against the host reference on the same operands
 * (plugin/step_check.h); or the logits against those of another program, or of other numerics.
 */
#include "plugin/cli/verify.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/cli/prompt_file.h"
#include "plugin/pipeline/session.h"
#include "plugin/pipeline/token_runner.h"
#include "plugin/program_util/json_out.h"
#include "plugin/program_util/progress.h"

struct args {
    struct xm_cli_target target; /* first: the common options */
    const char *prompt, *file, *ids, *against;
    uint64_t decode; /* UINT64_MAX: not given */
    bool numerics;
};

/* clang-format off */
#define AT(member) offsetof(struct args, member)
static const struct xm_cli_option options[] = {
    XM_CLI_GROUP("The tokens", "xemoe verify model.gguf -p 'The capital of France is' --decode 4"),
    { 'p', "prompt", XM_CLI_TEXT,  AT(prompt), "TEXT", "text whose tokens are run; default: the first tokens of the vocabulary" },
    { 'f', "file",   XM_CLI_TEXT,  AT(file),   "FILE", "the same from a file; -: standard input" },
    { 0,   "ids",    XM_CLI_TEXT,  AT(ids),    "IDS",  "the same as token ids: 1,2,3 or @FILE" },
    { 0,   "decode", XM_CLI_WHOLE, AT(decode), "N",    "decode N tokens after the prompt, one by one (2)" },
    XM_CLI_GROUP("What is compared instead", "xemoe verify model.gguf --ids 1,2,3 --numerics"),
    { 0,   "against", XM_CLI_TEXT, AT(against), "FILE", "compare the logits with these instead: .npy, float32 of every\nposition or the last; or float32 alone (.bin)" },
    { 0,   "numerics", XM_CLI_FLAG, AT(numerics), NULL,  "what roundings as in training (XM_NUMERICS=bf16) change instead" },
};
#undef AT
/* clang-format on */

enum { WORST_SHOWN = 8, DEFAULT_IDS = 12, DEFAULT_DECODE = 2 };

struct verify {
    struct xm_step_check *worst; /* that was seen of each step */
    uint32_t n;
    bool no_memory;
};

static void
on_check(const struct xm_step_check *check, void *ctx)
{
    struct verify *v = ctx;
    xm_progress_show("step %u of %u", check->step + 1, check->n_steps);
    if (!v->worst) {
        v->worst = xm_calloc(check->n_steps, sizeof(*v->worst));
        v->n = v->worst ? check->n_steps : 0;
        v->no_memory = !v->worst;
    }
    if (v->no_memory)
        return;
    struct xm_step_check *worst = &v->worst[check->step];
    if (!worst->compared || (check->compared && xm_step_check_severity(check) >
                                                    xm_step_check_severity(worst)))
        *worst = *check;
}

/* ---- the report -------------------------------------------------------------------- */

/* Of steps alike the first: behind one that makes NaN all others do. */
static int
by_severity(const void *a, const void *b)
{
    const struct xm_step_check *p = a, *q = b;
    double x = xm_step_check_severity(p), y = xm_step_check_severity(q);
    return x > y ? -1 : x < y ? 1 : p->step < q->step ? -1 : 1;
}

static void
count_results(const struct verify *v, uint32_t *compared, uint32_t *over)
{
    *compared = *over = 0;
    for (uint32_t i = 0; i < v->n; i++) {
        *compared += v->worst[i].compared;
        *over += xm_step_check_severity(&v->worst[i]) > 1.0;
    }
}

static void
print_text(const struct xm_cli_model *m, const struct verify *v, uint32_t compared,
           uint32_t over)
{
    struct xm_strbuf device = {0};
    xm_cli_model_device(m, &device);
    printf("%s\n%u of %u steps compared, %u over tolerance; the worst:\n",
           xm_strbuf_text(&device), compared, v->n, over);
    xm_strbuf_free(&device);
    for (uint32_t i = 0; i < v->n && i < WORST_SHOWN + over; i++) {
        const struct xm_step_check *r = &v->worst[i];
        if (r->compared)
            printf("  %.2e of %.1e%s  step %u %s '%s', row %" PRIu64 "%s%s\n", r->error,
                   r->tolerance, xm_step_check_severity(r) > 1.0 ? " OVER" : "", r->step,
                   r->op, r->name, r->row, r->part ? " of the " : "",
                   r->part ? r->part : "");
    }
}

static enum xm_status
print_json(const struct xm_cli_model *m, const struct verify *v, uint32_t compared,
           uint32_t over, struct xm_error *err)
{
    struct xm_json_out j;
    struct xm_strbuf device = {0};
    xm_json_begin(&j);
    xm_cli_model_device(m, &device);
    xm_json_add_text(&j, NULL, "device", xm_strbuf_text(&device), device.n);
    xm_strbuf_free(&device);
    xm_json_add_whole(&j, NULL, "compared", compared);
    xm_json_add_whole(&j, NULL, "over", over);
    yyjson_mut_val *list = xm_json_add_array(&j, NULL, "steps");
    for (uint32_t i = 0; i < v->n; i++) {
        const struct xm_step_check *r = &v->worst[i];
        if (!r->op)
            continue; /* the run did not come to it */
        yyjson_mut_val *o = xm_json_add_object(&j, list, NULL);
        xm_json_add_whole(&j, o, "step", r->step);
        xm_json_add_text(&j, o, "op", r->op, strlen(r->op));
        xm_json_add_text(&j, o, "name", r->name, strlen(r->name));
        xm_json_add_bool(&j, o, "compared", r->compared);
        xm_json_add_real(&j, o, "error", r->error);
        xm_json_add_real(&j, o, "tolerance", r->tolerance);
        xm_json_add_whole(&j, o, "row", r->row);
        if (r->part)
            xm_json_add_text(&j, o, "part", r->part, strlen(r->part));
    }
    enum xm_status s = xm_json_print(&j, err);
    xm_json_end(&j);
    return s;
}

static int
report(const struct xm_cli_model *m, const struct args *a, const struct verify *v)
{
    struct xm_error err = {0};
    uint32_t compared, over;
    count_results(v, &compared, &over);
    qsort(v->worst, v->n, sizeof(*v->worst), by_severity);
    if (!a->target.json)
        print_text(m, v, compared, over);
    else if (print_json(m, v, compared, over, &err) != XM_OK)
        return xm_cli_failed(&err);
    int code = xm_cli_flush();
    return code == XM_EXIT_OK && over ? XM_EXIT_TOLERANCE : code;
}

/* ---- the run ----------------------------------------------------------------------- */

static enum xm_status
run_checked(const struct xm_cli_model *m, struct verify *v,
            const struct xm_token_list *ids, uint64_t decode, struct xm_error *err)
{
    const struct xm_generation run = {
        .prompt = {.kind = XM_PROMPT_IDS, .ids = ids->ids, .n = ids->n},
        .max_tokens = decode + 1, /* the last one is not fed */
        .ignore_ends = true};
    struct xm_generation_result result = {0};
    struct xm_session *session = NULL;
    XM_TRY(xm_session_create(m->compiled, NULL, &session, err));
    struct xm_infer *infer = xm_session_request(session);
    xm_cli_catch_interrupt(infer);
    enum xm_status s = infer->ops->check(infer, on_check, v, err);
    if (s == XM_OK)
        s = xm_session_run(session, &run, &result, err);
    if (v->no_memory)
        s = xm_no_memory(err, "the results");
    if (s == XM_OK && result.finish == XM_FINISH_CANCELLED)
        s = xm_fail(err, XM_CANCELLED, "stopped before the last step was compared");
    xm_cli_release_interrupt();
    xm_progress_clear();
    xm_generation_result_free(&result);
    xm_session_destroy(session);
    return s;
}

/* Then there are no logits to go on with, and the step that began it is what is asked for. */
static bool
made_nan(const struct verify *v)
{
    for (uint32_t i = 0; i < v->n; i++) {
        if (isinf(v->worst[i].error))
            return true;
    }
    return false;
}

static int
run_ids(const struct xm_cli_model *m, const struct args *a,
        const struct xm_token_list *ids)
{
    struct xm_error err = {0};
    struct verify v = {0};
    const enum xm_status s = run_checked(m, &v, ids, a->decode, &err);
    int code = s == XM_OK || made_nan(&v) ? report(m, a, &v) : xm_cli_failed(&err);
    xm_free(v.worst);
    return code;
}

/* Whether neither --against nor --numerics is given, which compare logits. */
static bool
checks_steps(const struct args *a)
{
    return !a->against && !a->numerics;
}

static bool
default_ids(uint64_t vocabulary, struct xm_token_list *out)
{
    for (int32_t i = 0; i < DEFAULT_IDS && (uint64_t)i < vocabulary; i++) {
        if (!xm_token_list_add(out, i))
            return false;
    }
    return true;
}

static int
run_model(struct xm_cli_model *m, const struct args *a, const struct xm_strbuf *text,
          struct xm_other_logits *other)
{
    static const struct xm_error no_memory = {XM_NO_MEMORY,
                                              "out of memory for token ids"};
    struct xm_token_list ids = {0};
    int code = XM_EXIT_OK;
    if (checks_steps(a) && !m->compiled->ops->steps)
        return xm_cli_usage("device %s has no steps to compare with the reference",
                            a->target.device);
    if (a->ids || text->n)
        code = xm_cli_prompt(m, a->ids, xm_strbuf_text(text), text->n, &ids);
    else if (!default_ids(xm_compiled_vocabulary(m->compiled), &ids))
        code = xm_cli_failed(&no_memory);
    if (code == XM_EXIT_OK)
        code = a->against    ? xm_verify_against(m, other, &ids, a->target.json)
               : a->numerics ? xm_verify_numerics(m, &a->target, &ids)
                             : run_ids(m, a, &ids);
    xm_token_list_free(&ids);
    return code;
}

static int
check(const struct args *a)
{
    const int given = (a->prompt != NULL) + (a->file != NULL) + (a->ids != NULL);
    if (given > 1)
        return xm_cli_usage("give one of -p TEXT, -f FILE and --ids IDS");
    if (a->against && given == 0)
        return xm_cli_usage("which tokens are the logits of? Give -p TEXT, -f FILE or "
                            "--ids IDS");
    if (a->against && a->numerics)
        return xm_cli_usage("give one of --against and --numerics");
    if (!checks_steps(a) && a->decode != UINT64_MAX)
        return xm_cli_usage("--%s runs the tokens that are given: leave --decode out",
                            a->against ? "against" : "numerics");
    return a->ids ? xm_cli_ids_check(a->ids, true) : XM_EXIT_OK;
}

static int
read_text(const struct args *a, struct xm_strbuf *text)
{
    struct xm_error err = {0};
    if (a->prompt)
        xm_strbuf_add(text, a->prompt);
    else if (a->file && xm_prompt_file_read(a->file, text, &err) != XM_OK)
        return xm_cli_failed(&err);
    return (a->prompt || a->file) && text->n == 0
               ? xm_cli_usage("the prompt is empty: there is nothing to run")
               : XM_EXIT_OK;
}

static int
run(struct args *a)
{
    const struct xm_compile_options compile = {.keep_graph = checks_steps(a)};
    struct xm_strbuf text = {0};
    struct xm_other_logits other = {0};
    struct xm_cli_model m;
    a->target.needs_tokenizer = a->prompt || a->file ? XM_CLI_IDS_INSTEAD : NULL;
    a->target.is_exact = true;
    if (a->numerics) /* what is compared with, whatever the environment says */
        a->target.numerics = "f32";
    int code = read_text(a, &text);
    if (code == XM_EXIT_OK && a->against)
        code = xm_other_logits_read(a->against, &other);
    if (code == XM_EXIT_OK)
        code = xm_cli_model_open(&m, &a->target, &compile);
    if (code == XM_EXIT_OK) {
        code = run_model(&m, a, &text, &other);
        xm_cli_model_close(&m);
    }
    xm_other_logits_free(&other);
    xm_strbuf_free(&text);
    return code;
}

int
xm_cli_verify(int argc, char **argv)
{
    static const struct xm_cli_spec spec = {
        .usage =
            "xemoe verify MODEL [-p TEXT | -f FILE | --ids IDS] [--decode N] "
            "[options]\n"
            "       xemoe verify MODEL (-p TEXT | -f FILE | --ids IDS) --against FILE\n"
            "       xemoe verify MODEL [-p TEXT | -f FILE | --ids IDS] --numerics",
        .about =
            "Runs tokens on the device and compares the result of every step with the\n"
            "host reference on the same operands, row by row. Slow: the reference is\n"
            "plain code.\n"
            "\n"
            "With --against the logits are compared with those that another program has\n"
            "computed of the same tokens: the error of each position, the likeliest "
            "tokens of\n"
            "the worst. The exit code is 1 where the mean-removed error of all is 1e-2 "
            "or\n"
            "more.\n"
            "\n"
            "With --numerics they are those of the same model twice: without and with\n"
            "embeddings, routers' inputs and per-layer embeddings rounded to bf16, as\n"
            "training does.\n",
        .common = xm_cli_target_options,
        .n_common = XM_CLI_N_TARGET_OPTIONS,
        .own = options,
        .n_own = XM_ARRAY_LEN(options),
        XM_CLI_MODEL(XM_CLI_TARGET(model)),
    };
    struct args a = {.decode = UINT64_MAX};
    bool done;
    int code = xm_cli_begin(&spec, argc, argv, &a, &done);
    if (done)
        return code;
    code = check(&a);
    if (code != XM_EXIT_OK)
        return code;
    if (a.decode == UINT64_MAX)
        a.decode = DEFAULT_DECODE;
    return run(&a);
}
