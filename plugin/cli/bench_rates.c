/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores the rates that a benchmark of a model reached on a device, for the forecasts of `xemoe
 * plan`.
 */
#include <inttypes.h>
#include <stdio.h>

#include "plugin/cli/bench_parts.h"
#include "plugin/cli/kernels.h"
#include "plugin/cli/plan_command.h"
#include "plugin/cli/plan_forecast.h"
#include "runtime/dry_run.h"

/* a shorter prompt takes more time to read weights than to multiply */
enum { LEAST_PROMPT = 64 };

void
xm_bench_note_rates(struct xm_bench_rates *r, const struct xm_bench_test *t,
                    double seconds)
{
    if (t->depth == 0 && t->n_gen == 0 && t->n_prompt >= LEAST_PROMPT &&
        t->n_prompt > r->n_prompt) {
        r->n_prompt = t->n_prompt;
        r->prompt_s = seconds;
    }
    if (t->depth == 0 && t->n_prompt == 0 && t->n_parallel == 1 && t->n_gen > r->n_gen) {
        r->n_gen = t->n_gen;
        r->token_s = seconds / (double)t->n_gen;
    }
}

static enum xm_status
set(struct xm_config *c, const char *key, const char *value, struct xm_error *err)
{
    return value ? xm_config_set(c, key, value, err) : XM_OK;
}

/* Whether no option changes the kernels' work or the location of experts. */
static bool
is_usual(const struct xm_cli_target *t)
{
    return !t->precision && !t->quantisation && !t->offload && !t->expert_cache &&
           !t->weights && !t->no_tune && !t->messages;
}

static enum xm_status
find_config(const struct xm_bench_test *t, struct xm_config *c, struct xm_error *err)
{
    char ubatch[XM_CLI_NUMBER];
    snprintf(ubatch, sizeof(ubatch), "%" PRIu64, t->ubatch);
    xm_config_init(c);
    XM_TRY(set(c, "XM_UBATCH", ubatch, err));
    XM_TRY(set(c, "KEY_CACHE_PRECISION", t->type_k, err));
    return set(c, "VALUE_CACHE_PRECISION", t->type_v, err);
}

static enum xm_status
keep_of_device(const struct xm_bench_bed *bed, const struct xm_bench_test *t,
               const struct xm_bench_rates *r, const char *cache_dir, struct xm_plan *p,
               struct xm_error *err)
{
    struct xm_graph *g = NULL;
    p->info = t->device->info;
    p->only_this = true;
    p->wish = (struct xm_plan_wish){.context = r->n_prompt + 1,
                                    .requests = 1,
                                    .prompt = r->n_prompt,
                                    .past = r->n_gen / 2};
    XM_TRY(xm_package_read_graph(bed->model.package, NULL, &g, err));
    enum xm_status s = xm_planner_plan(p, g, err);
    xm_graph_destroy(g);
    if (s == XM_OK && p->need.host_weights == 0)
        xm_plan_keep_rates(p, cache_dir, r->token_s, r->prompt_s);
    return s;
}

static void
keep(const struct xm_bench_bed *bed, const struct xm_bench_args *a,
     const struct xm_bench_test *t, const struct xm_bench_rates *r, const char *cache_dir,
     struct xm_plan *p)
{
    const struct xm_plan_args mesh = {
        .chip = {.device = t->device->name, .context = r->n_prompt + 1},
        .split = a->target.split,
        .parallel = 1,
        .prompt = r->n_prompt};
    struct xm_error err = {0};
    if (find_config(t, &p->config, &err) != XM_OK)
        return;
    if (xm_plan_is_mesh(&mesh))
        xm_plan_keep_mesh(&mesh, &p->config, bed->model.package, cache_dir, r->prompt_s,
                          r->token_s);
    else
        (void)keep_of_device(bed, t, r, cache_dir, p, &err);
    xm_planner_free_plan(p);
}

void
xm_bench_keep_rates(const struct xm_bench_bed *bed, const struct xm_bench_args *a,
                    const struct xm_bench_test *t, const struct xm_bench_rates *r)
{
    struct xm_error err = {0};
    struct xm_strbuf cache = {0};
    if (!r->n_prompt || !r->n_gen || t->device->is_reference || a->no_warmup ||
        xm_dry_run() || !is_usual(&a->target))
        return;
    struct xm_plan *p = xm_calloc(1, sizeof(*p));
    if (p && xm_cli_cache_open(a->target.cache_dir, &cache, &err) == XM_OK && cache.n)
        keep(bed, a, t, r, cache.text, p);
    xm_free(p);
    xm_strbuf_free(&cache);
}
