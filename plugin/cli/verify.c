/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe verify: every step on the device against the host reference on the same operands.
 *
 *     error of a row = |device - reference| / |reference|     (Euclidean, along the last axis)
 *
 * Because each step is compared on what the device gave it, errors do not add up from step to step:
 * the first wrong kernel is the first step over its tolerance. Not compared: steps that ran on
 * the host. A step with two equal router logits may choose another expert than the reference.
 */
#include "plugin/gpu/verify_operands.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/cli/cli.h"
#include "plugin/cli/json_out.h"
#include "plugin/cli/progress.h"
#include "plugin/pipeline/session.h"
#include "plugin/pipeline/token_runner.h"

struct args {
    struct xm_cli_target target; /* first: the common options */
    const char *prompt, *ids;
    uint64_t decode;
};

/* clang-format off */
#define AT(member) offsetof(struct args, member)
static const struct xm_cli_option options[] = {
    { 'p', "prompt", XM_CLI_TEXT,  AT(prompt), "TEXT", "the tokens to run; default: the first of the vocabulary" },
    { 0,   "ids",    XM_CLI_TEXT,  AT(ids),    "IDS",  "the same as token ids: 1,2,3 or @FILE" },
    { 0,   "decode", XM_CLI_WHOLE, AT(decode), "N",    "then N more tokens, one by one (2)" },
};
#undef AT

/* Largest error of a row by the coarsest element type of floats among a step's operands; the first
 * that is met. Measured on the test models with PoCL: 3e-4 with f16, which is one rounding, and
 * 5e-7 with f32. The rest is for long sums in another order and for devices that keep
 * intermediates in f16. */
static const struct {
    enum xm_element element;
    double tolerance;
} tolerances[] = {
    { XM_F16, 2e-3 },
    { XM_F32, 2e-5 },
};
/* clang-format on */

enum {
    WORST_SHOWN = 8,
    DEFAULT_IDS = 12,
    ROUNDINGS = 4 /* times what one rounding at random has done: the worst of many rows */
};

/* The worst that was seen of one step of the program. */
struct result {
    uint32_t step;
    double error, tolerance;
    uint64_t row;
    bool compared;
};

struct verify {
    const struct xm_program *program;
    struct xm_state_store *states;
    struct result *results; /* by step */
};

/* ---- one step ---------------------------------------------------------------------- */

/* Whether a step reads a cache of this type, which is no operand. */
static bool
reads_cache_of(const struct xm_verify_step *v, enum xm_element e)
{
    return v->step->kind == XM_STEP_ATTENTION &&
           xm_request_program(v->request)->kv[v->step->layer].element == e;
}

static double
tolerance_of(const struct xm_verify_step *v)
{
    for (size_t t = 0; t < XM_ARRAY_LEN(tolerances); t++) {
        if (reads_cache_of(v, tolerances[t].element))
            return tolerances[t].tolerance;
        for (uint32_t i = 0; i < v->step->n_operands; i++) {
            if (v->operands[i].buffer && v->operands[i].element == tolerances[t].element)
                return tolerances[t].tolerance;
        }
    }
    return 0.0;
}

static double
element_at(const struct xm_tensor *t, uint64_t i, double limit)
{
    double x = t->f ? (double)t->f[i] : (double)t->i[i];
    return isnan(x) ? x : fmax(-limit, fmin(limit, x));
}

/* Whether the device's type could not hold a number. Masks are of the largest f32 in place of
 * infinity. */
static bool
has_overflowed(double device, double reference)
{
    return isinf(device) && fabs(reference) < 1e38;
}

/* Both sides are held inside what the device's type can say. Zero against almost zero is no
 * error. */
static double
row_error(const struct xm_tensor *device, const struct xm_tensor *reference, uint64_t at,
          uint64_t n, bool is_half)
{
    double limit = is_half ? 65504.0 : 3.402823466e38, tiny = is_half ? 6e-8 : 1e-30;
    double difference = 0.0, size = 0.0;
    for (uint64_t i = at; i < at + n; i++) {
        double r = element_at(reference, i, limit);
        double d = element_at(device, i, limit) - r;
        if (device->f &&
            has_overflowed(device->f[i], reference->f ? reference->f[i] : 0.0))
            return INFINITY;
        difference += d * d;
        size += r * r;
    }
    double error = sqrt(difference) / fmax(sqrt(size), tiny * sqrt((double)n) * 1e3);
    return isnan(error) ? INFINITY : error;
}

static const double MOST_ROUNDED =
    0.5; /* what is further off is wrong, or nothing is right */

/* How far a step is from its tolerance; integers have none and must agree. */
static double
severity(const struct result *r)
{
    return r->tolerance > 0.0 ? r->error / r->tolerance : r->error > 0.0 ? INFINITY : 0.0;
}

/* Keeps the worst row. One that rounding alone changes, by steep logits, may be further off. */
static enum xm_status
compare(const struct xm_verify_step *v, const struct xm_operand *o,
        const struct xm_tensor *device, const struct xm_tensor *reference,
        struct xm_tensor *const *rounded, struct result *out, struct xm_error *err)
{
    const bool is_half = o->element == XM_F16;
    uint64_t cols = o->rank ? (uint64_t)o->dim[o->rank - 1] : 1;
    if (device->n != reference->n)
        return xm_fail(err, XM_INVALID,
                       "the device has %" PRIu64 " elements, the reference %" PRIu64,
                       device->n, reference->n);
    for (uint64_t r = 0; cols && r < device->n / cols; r++) {
        struct result row = {.step = out->step, .row = r, .compared = true};
        double by = 0.0;
        row.error = row_error(device, reference, r * cols, cols, is_half);
        for (uint32_t i = 0; i < XM_VERIFY_ROUNDED && rounded[i]; i++)
            by = fmax(by, row_error(rounded[i], reference, r * cols, cols, is_half));
        row.tolerance = tolerance_of(v) + fmin(ROUNDINGS * by, MOST_ROUNDED);
        if (!out->compared || severity(&row) > severity(out))
            *out = row;
    }
    out->compared = true;
    return XM_OK;
}

static enum xm_status
check_step(const struct xm_verify_step *v, struct result *out, struct xm_error *err)
{
    uint32_t n = xm_verify_n_results(v);
    struct xm_tensor **reference = xm_calloc(n + 1, sizeof(struct xm_tensor *));
    struct xm_tensor *rounded[XM_VERIFY_ROUNDED] = {NULL};
    if (!reference)
        return xm_fail(err, XM_NO_MEMORY, "out of memory for a step's results");
    enum xm_status s = xm_verify_reference(v, reference, rounded, err);
    for (uint32_t i = 0; i < n && s == XM_OK; i++) {
        const struct xm_operand *o = xm_verify_result(v, i);
        struct xm_tensor *device = NULL;
        s = xm_verify_read(v, o, &device, err);
        if (s == XM_OK)
            s = compare(v, o, device, reference[i], rounded, out, err);
        xm_tensor_destroy(device);
    }
    for (uint32_t i = 0; i < n; i++)
        xm_tensor_destroy(reference[i]);
    for (uint32_t i = 0; i < XM_VERIFY_ROUNDED; i++)
        xm_tensor_destroy(rounded[i]);
    xm_free(reference);
    return s == XM_NOT_FOUND && (!err || err->status == XM_OK) ? XM_OK : s;
}

static enum xm_status
on_step(struct xm_request *r, uint32_t step, const struct xm_operand *operands, void *ctx,
        struct xm_error *err)
{
    struct verify *v = ctx;
    struct xm_verify_step one = {r, &v->program->steps[step], operands, v->states};
    xm_progress_show("step %u of %u", step + 1, v->program->n_steps);
    return check_step(&one, &v->results[step], err);
}

/* ---- the report -------------------------------------------------------------------- */

/* Of steps alike the first: behind one that makes NaN all others do. */
static int
by_severity(const void *a, const void *b)
{
    const struct result *p = a, *q = b;
    double x = severity(p), y = severity(q);
    return x > y ? -1 : x < y ? 1 : p->step < q->step ? -1 : 1;
}

static void
count_results(const struct verify *v, uint32_t *compared, uint32_t *over)
{
    *compared = *over = 0;
    for (uint32_t i = 0; i < v->program->n_steps; i++) {
        *compared += v->results[i].compared;
        *over += severity(&v->results[i]) > 1.0;
    }
}

static void
print_text(const struct xm_cli_model *m, const struct verify *v, uint32_t compared,
           uint32_t over)
{
    struct xm_strbuf device = {0};
    xm_cli_model_device(m, &device);
    printf("%s\n%u of %u steps compared, %u over tolerance; the worst:\n",
           xm_strbuf_text(&device), compared, v->program->n_steps, over);
    xm_strbuf_free(&device);
    for (uint32_t i = 0; i < v->program->n_steps && i < WORST_SHOWN + over; i++) {
        const struct result *r = &v->results[i];
        const struct xm_step *s = &v->program->steps[r->step];
        if (r->compared)
            printf("  %.2e of %.0e%s  step %u %s '%s', row %" PRIu64 "\n", r->error,
                   r->tolerance, severity(r) > 1.0 ? " OVER" : "", r->step, s->op,
                   s->name, r->row);
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
    for (uint32_t i = 0; i < v->program->n_steps; i++) {
        const struct result *r = &v->results[i];
        const struct xm_step *s = &v->program->steps[r->step];
        yyjson_mut_val *o = xm_json_add_object(&j, list, NULL);
        xm_json_add_whole(&j, o, "step", r->step);
        xm_json_add_text(&j, o, "op", s->op, strlen(s->op));
        xm_json_add_text(&j, o, "name", s->name, strlen(s->name));
        xm_json_add_bool(&j, o, "compared", r->compared);
        xm_json_add_real(&j, o, "error", r->error);
        xm_json_add_real(&j, o, "tolerance", r->tolerance);
        xm_json_add_whole(&j, o, "row", r->row);
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
    qsort(v->results, v->program->n_steps, sizeof(*v->results), by_severity);
    if (!a->target.json)
        print_text(m, v, compared, over);
    else if (print_json(m, v, compared, over, &err) != XM_OK)
        return xm_cli_failed(&err);
    int code = xm_cli_flush();
    return code == XM_EXIT_OK && over ? XM_EXIT_TOLERANCE : code;
}

/* ---- the run ----------------------------------------------------------------------- */

static enum xm_status
run_hooked(const struct xm_cli_model *m, struct verify *v,
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
    xm_request_set_hook(infer->request, on_step, v);
    enum xm_status s = xm_session_run(session, &run, &result, err);
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
    for (uint32_t i = 0; v->results && i < v->program->n_steps; i++) {
        if (isinf(v->results[i].error))
            return true;
    }
    return false;
}

static int
run_ids(const struct xm_cli_model *m, const struct args *a,
        const struct xm_token_list *ids)
{
    struct xm_error err = {0};
    struct verify v = {.program = m->compiled->program};
    v.states = xm_state_store_create();
    v.results = xm_calloc(v.program->n_steps + 1, sizeof(*v.results));
    enum xm_status s = XM_OK;
    if (!v.states || !v.results)
        s = xm_fail(&err, XM_NO_MEMORY, "out of memory for the results");
    for (uint32_t i = 0; i < v.program->n_steps && s == XM_OK; i++)
        v.results[i].step = i;
    if (s == XM_OK)
        s = run_hooked(m, &v, ids, a->decode, &err);
    int code = s == XM_OK || made_nan(&v) ? report(m, a, &v) : xm_cli_failed(&err);
    xm_state_store_destroy(v.states);
    xm_free(v.results);
    return code;
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
run_model(const struct xm_cli_model *m, const struct args *a)
{
    static const struct xm_error no_memory = {XM_NO_MEMORY,
                                              "out of memory for token ids"};
    struct xm_token_list ids = {0};
    int code = XM_EXIT_OK;
    if (!m->compiled->program)
        return xm_cli_usage("device %s is the reference that verify compares with",
                            a->target.device);
    if (a->ids || a->prompt)
        code =
            xm_cli_prompt(m, a->ids, a->prompt, a->prompt ? strlen(a->prompt) : 0, &ids);
    else if (!default_ids(xm_compiled_vocabulary(m->compiled), &ids))
        code = xm_cli_failed(&no_memory);
    if (code == XM_EXIT_OK)
        code = run_ids(m, a, &ids);
    xm_token_list_free(&ids);
    return code;
}

int
xm_cli_verify(int argc, char **argv)
{
    static const struct xm_cli_spec spec = {
        .usage = "xemoe verify -m PATH [-p TEXT | --ids IDS] [--decode N] [options]",
        .about =
            "Runs tokens on the device and compares the result of every step with the\n"
            "host reference on the same operands, row by row. Slow: the reference is\n"
            "plain code.\n",
        .common = xm_cli_target_options,
        .n_common = XM_CLI_N_TARGET_OPTIONS,
        .own = options,
        .n_own = XM_ARRAY_LEN(options),
    };
    struct args a = {.decode = 2};
    struct xm_compile_options compile = {.keep_graph = true};
    struct xm_cli_model m;
    bool done;
    int code = xm_cli_begin(&spec, argc, argv, &a, &done);
    if (done)
        return code;
    if (a.prompt && a.ids)
        return xm_cli_usage("give one of -p TEXT and --ids IDS");
    code = a.ids ? xm_cli_ids_check(a.ids, true) : XM_EXIT_OK;
    a.target.needs_tokenizer = a.prompt ? XM_CLI_IDS_INSTEAD : NULL;
    if (code == XM_EXIT_OK)
        code = xm_cli_model_open(&m, &a.target, &compile);
    if (code != XM_EXIT_OK)
        return code;
    code = run_model(&m, &a);
    xm_cli_model_close(&m);
    return code;
}
