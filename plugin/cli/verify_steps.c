/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe verify: compares every step on the device with the host reference on the same operands
 * (plugin/step_check.h).
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/cli/verify.h"
#include "plugin/pipeline/session.h"
#include "plugin/program_util/json_out.h"
#include "plugin/program_util/lines.h"
#include "plugin/program_util/progress.h"
#include "runtime/util/memory.h"
#include "runtime/util/number.h"

enum { WORST_SHOWN = 8, KERNEL_NAME = 64 };
#define HASH_FACTOR UINT64_C(0x9e3779b97f4a7c15)

/* A kernel, with the results of all steps that ran it. */
struct kernel {
    char name[KERNEL_NAME];
    uint64_t compared; /* number of runs of a step */
    double severity;   /* the largest */
};

struct verify {
    const struct xm_cli_target *target;
    struct xm_step_check *worst; /* the worst result of each step */
    uint32_t n;
    struct kernel *kernels;
    size_t n_kernels, capacity;
    uint64_t round; /* 0: the usual kernels; else the value for XM_FORCE, from 1 on */
    uint64_t ran;   /* hash of the kernels that this round has run */
    bool is_nan;    /* a step of this round produced NaN or infinity */
    bool no_memory;
};

/* ---- the results ------------------------------------------------------------------- */

static struct kernel *
kernel_named(struct verify *v, const char *name, size_t n)
{
    for (size_t i = 0; i < v->n_kernels; i++) {
        if (strlen(v->kernels[i].name) == n && memcmp(v->kernels[i].name, name, n) == 0)
            return &v->kernels[i];
    }
    struct kernel *list =
        xm_grow(v->kernels, &v->capacity, v->n_kernels + 1, sizeof(*list));
    if (!list) {
        v->no_memory = true;
        return NULL;
    }
    v->kernels = list;
    struct kernel *new = &list[v->n_kernels++];
    *new = (struct kernel){.compared = 0};
    memcpy(new->name, name, n);
    return new;
}

static void
add_kernels(struct verify *v, const struct xm_step_check *check)
{
    const char *at = check->kernels;
    for (const char *c = at; *c; c++)
        v->ran = (v->ran + check->step + (unsigned char)*c) * HASH_FACTOR;
    for (size_t n; check->compared && (n = strcspn(at, " ")) > 0;
         at += n + strspn(at + n, " ")) {
        struct kernel *k = n < KERNEL_NAME ? kernel_named(v, at, n) : NULL;
        if (!k)
            continue;
        k->compared++;
        k->severity = fmax(k->severity, xm_step_check_severity(check));
    }
}

static void
on_check(const struct xm_step_check *check, void *ctx)
{
    struct verify *v = ctx;
    char round[48] = "";
    if (v->round)
        snprintf(round, sizeof(round), "kernel %" PRIu64 " of each step, ", v->round);
    xm_progress_show("%sstep %u of %u", round, check->step + 1, check->n_steps);
    if (!v->worst) {
        v->worst = xm_calloc(check->n_steps, sizeof(*v->worst));
        v->n = v->worst ? check->n_steps : 0;
        v->no_memory = !v->worst;
    }
    if (v->no_memory || check->step >= v->n) /* all rounds have the same steps */
        return;
    v->is_nan |= isinf(check->error);
    add_kernels(v, check);
    struct xm_step_check *worst = &v->worst[check->step];
    if (!worst->compared || (check->compared && xm_step_check_severity(check) >
                                                    xm_step_check_severity(worst)))
        *worst = *check;
    worst->op = check->op;
    worst->name = check->name;
}

/* ---- the report -------------------------------------------------------------------- */

/* Sorts by severity; among equal ones the earlier step comes first, because after a NaN all later
 * steps have NaN. Likewise, of steps over tolerance with accumulated errors the first one comes
 * first. */
static int
by_severity(const void *a, const void *b)
{
    const struct xm_step_check *p = a, *q = b;
    double x = xm_step_check_severity(p), y = xm_step_check_severity(q);
    if (p->accumulates && x > 1.0 && y > 1.0)
        return p->step < q->step ? -1 : 1;
    return x > y ? -1 : x < y ? 1 : p->step < q->step ? -1 : 1;
}

static int
by_name(const void *a, const void *b)
{
    const struct kernel *p = a, *q = b;
    return strcmp(p->name, q->name);
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
print_kernels(const struct verify *v, struct xm_lines *o)
{
    xm_lines_add(o,
                 "%zu kernel%s, each with the largest error of its steps relative to the "
                 "tolerance:\n",
                 v->n_kernels, xm_plural(v->n_kernels));
    for (size_t i = 0; i < v->n_kernels; i++)
        xm_lines_add(o, "  %-28s %9.2g%s\n", v->kernels[i].name, v->kernels[i].severity,
                     v->kernels[i].severity > 1.0 ? "  OVER" : "");
}

static void
print_text(const struct xm_cli_model *m, const struct verify *v, uint32_t compared,
           uint32_t over)
{
    struct xm_lines o = xm_lines_to(stdout);
    struct xm_strbuf device = {0};
    xm_cli_model_device(m, &device);
    xm_lines_add(&o, "%s\n%u of %u steps compared, %u over tolerance; the worst:\n",
                 xm_strbuf_text(&device), compared, v->n, over);
    xm_strbuf_free(&device);
    for (uint32_t i = 0; i < v->n && i < WORST_SHOWN + over; i++) {
        const struct xm_step_check *r = &v->worst[i];
        const bool is_over = xm_step_check_severity(r) > 1.0;
        if (r->compared && r->op) /* NULL: the last round ended before this step */
            xm_lines_add(
                &o, "  %.2e of %.1e%s  step %u %s '%s', row %" PRIu64 "%s%s%s%s\n",
                r->error, r->tolerance, is_over ? " OVER" : "", r->step, r->op, r->name,
                r->row, r->part ? " of the " : "", r->part ? r->part : "",
                is_over && r->kernels[0] ? ", by " : "", is_over ? r->kernels : "");
    }
    if (v->round)
        print_kernels(v, &o);
    xm_lines_end(&o);
}

static void
add_step(struct xm_json_out *j, yyjson_mut_val *list, const struct xm_step_check *r)
{
    yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
    xm_json_add_whole(j, o, "step", r->step);
    xm_json_add_text(j, o, "op", r->op, strlen(r->op));
    xm_json_add_text(j, o, "name", r->name, strlen(r->name));
    xm_json_add_bool(j, o, "compared", r->compared);
    xm_json_add_real(j, o, "error", r->error);
    xm_json_add_real(j, o, "tolerance", r->tolerance);
    xm_json_add_whole(j, o, "row", r->row);
    if (r->part)
        xm_json_add_text(j, o, "part", r->part, strlen(r->part));
    if (r->kernels[0])
        xm_json_add_text(j, o, "kernels", r->kernels, strlen(r->kernels));
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
        if (v->worst[i].op) /* NULL: the last round ended before this step */
            add_step(&j, list, &v->worst[i]);
    }
    list = xm_json_add_array(&j, NULL, "kernels");
    for (size_t i = 0; i < v->n_kernels; i++) {
        const struct kernel *k = &v->kernels[i];
        yyjson_mut_val *o = xm_json_add_object(&j, list, NULL);
        xm_json_add_text(&j, o, "name", k->name, strlen(k->name));
        xm_json_add_whole(&j, o, "compared", k->compared);
        xm_json_add_real(&j, o, "share_of_tolerance", k->severity);
    }
    enum xm_status s = xm_json_print(&j, err);
    xm_json_end(&j);
    return s;
}

static int
report(const struct xm_cli_model *m, const struct verify *v)
{
    struct xm_error err = {0};
    uint32_t compared, over;
    count_results(v, &compared, &over);
    qsort(v->worst, v->n, sizeof(*v->worst), by_severity);
    if (v->n_kernels)
        qsort(v->kernels, v->n_kernels, sizeof(*v->kernels), by_name);
    if (!v->target->json)
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
        .max_tokens = decode + 1, /* the last token is not fed */
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

void
xm_verify_force(uint64_t nth)
{
    char number[XM_CLI_NUMBER];
    snprintf(number, sizeof(number), "%" PRIu64, nth);
    setenv("XM_FORCE", number, 1);
}

/* Opens the model again with the next kernel of each step. The steps' names belong to the old
 * model. */
static int
begin_round(struct xm_cli_model *m, struct verify *v)
{
    const struct xm_compile_options compile = {.keep_graph = true};
    for (uint32_t i = 0; i < v->n; i++)
        v->worst[i].op = v->worst[i].name = NULL;
    xm_cli_model_close(m);
    xm_verify_force(++v->round);
    return xm_cli_model_open(m, v->target, &compile);
}

int
xm_verify_steps(struct xm_cli_model *m, const struct xm_cli_target *t,
                const struct xm_token_list *ids, uint64_t decode, bool every_kernel)
{
    struct xm_error err = {0};
    struct verify v = {.target = t, .round = every_kernel};
    int code = XM_EXIT_OK;
    while (code == XM_EXIT_OK) {
        const uint64_t before = v.ran;
        v.ran = 0;
        v.is_nan = false;
        enum xm_status s = run_checked(m, &v, ids, decode, &err);
        /* there are no logits to continue with, and the faulty step is known */
        if (v.is_nan)
            s = XM_OK;
        if (s == XM_OK && every_kernel && v.ran != before) {
            code = begin_round(m, &v);
            continue;
        }
        /* after a failure in a later round, the results of earlier ones are reported */
        if (s == XM_OK || v.round > 1)
            code = report(m, &v);
        if (s != XM_OK)
            code = xm_cli_failed(&err);
        break;
    }
    xm_free(v.worst);
    xm_free(v.kernels);
    return code;
}
