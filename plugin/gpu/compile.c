/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiling: first passes, then the config rules, then lowering. Only this file and lower*.c know
 * both operations of the graph and primitives. Passes ask here (xm_caps) what the device can run;
 * the answers come from pure functions of the primitives.
 */
#include "plugin/gpu/compile.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "plugin/gpu/batcher.h"
#include "plugin/gpu/planner.h"
#include "plugin/lower/lower.h"
#include "plugin/lower/weight_pages.h"
#include "primitives/onednn/onednn_weight.h"
#include "runtime/label_times.h"
#include "runtime/util/log.h"
#include "transformations/passes/slice_last_token.h"

/* ---- what can be run --------------------------------------------------------------- */

static bool
can_run(const void *ctx, enum xm_op op, const union xm_attr *attr,
        struct xm_value *const *in, uint32_t n_in, const char **why_not)
{
    const struct xm_lower_question q = {ctx, attr, in, n_in};
    const struct xm_lower_op *row = xm_lower_op(op);
    *why_not = row && row->why_not ? row->why_not(&q)
                                   : "the device does not support this operation";
    return *why_not == NULL;
}

struct xm_caps
xm_program_caps(const struct xm_device_info *device, const struct xm_config *config,
                const struct xm_program_facts *program)
{
    struct xm_config c = *config;
    xm_config_finalise(&c, device, program, NULL, NULL);
    return (struct xm_caps){.device = device,
                            .can_run = can_run,
                            .ctx = device,
                            .precision = c.inference_precision,
                            .rounds_as_trained = c.rounds_as_trained};
}

static struct xm_program_facts
facts_of(const struct xm_graph *g)
{
    struct xm_program_facts f = {.is_stateless = true};
    xm_for_each_node(n, g)
    {
        f.has_moe_3gemm_fused_compressed |= n->op == XM_OP_MOE_3GEMM_FUSED_COMPRESSED;
        f.has_moe |=
            n->op == XM_OP_MOE_3GEMM_FUSED_COMPRESSED || n->op == XM_OP_GATHER_MATMUL;
        f.has_paged_attention |= n->op == XM_OP_ATTENTION;
        f.is_stateless &= n->op != XM_OP_ATTENTION && n->op != XM_OP_READ_VALUE;
    }
    return f;
}

/* Returns whether the user has set an option that decides the element types of the KV cache. */
static bool
decides_caches(const struct xm_config *c)
{
    return xm_config_user_set(c, XM_OPTION_inference_precision) ||
           xm_config_user_set(c, XM_OPTION_accuracy_mode) ||
           xm_config_user_set(c, XM_OPTION_key_cache_precision) ||
           xm_config_user_set(c, XM_OPTION_value_cache_precision);
}

/* Sets options that the model's file asks for ("runtime_options/…") and that the user has not set.
 * Values that xemoe does not know are logged and ignored. */
static void
take_model_options(struct xm_config *c, const struct xm_graph *g)
{
    static const enum xm_option list[] = {XM_OPTION_kv_cache_precision,
                                          XM_OPTION_activations_scale,
                                          XM_OPTION_dynamic_quantization_group_size};
    size_t n;
    for (size_t i = 0; i < XM_ARRAY_LEN(list); i++) {
        const char *name = xm_option_rows(&n)[list[i]].name;
        char key[96];
        struct xm_error why = {0};
        snprintf(key, sizeof(key), "runtime_options/%s", name);
        const char *value = xm_graph_property(g, key);
        if (!value || xm_config_user_set(c, list[i]) ||
            (list[i] == XM_OPTION_kv_cache_precision && decides_caches(c)) ||
            (list[i] == XM_OPTION_dynamic_quantization_group_size && c->accuracy_mode))
            continue;
        if (xm_config_set(c, name, value, &why) != XM_OK)
            xm_log(XM_LOG_INFO, "the model's own options: %s", why.text);
    }
}

static enum xm_status
run_passes(struct xm_program *p, struct xm_graph *g,
           const struct xm_compile_options *options, struct xm_error *err)
{
    const struct xm_program_facts facts = facts_of(g);
    struct xm_caps caps = xm_program_caps(xm_engine_info(p->engine), &p->config, &facts);
    p->is_stateless = facts.is_stateless;
    take_model_options(&p->config, g);
    if (p->config.sequences || (options && options->sampled_logits))
        xm_pass_gather_sampled_tokens(g);
    if (g->err.status != XM_OK)
        return xm_fail(err, g->err.status, "%s", g->err.text);
    xm_passes(&p->n_reports);
    p->reports = xm_calloc(p->n_reports, sizeof(*p->reports));
    if (!p->reports)
        return xm_no_memory(err, "the passes' reports");
    return xm_pipeline_run(g, &caps, NULL, p->reports, &p->n_reports, err);
}

static enum xm_status
keep_notes(struct xm_program *p, const struct xm_graph *g, struct xm_error *err)
{
    struct xm_strbuf text = {0};
    for (const struct xm_note *n = g->notes; n; n = n->next)
        xm_strbuf_printf(&text, "%s\n", n->text);
    p->notes_text = xm_strbuf_take(&text);
    p->n_rounded = g->n_rounded;
    return p->notes_text ? XM_OK : xm_no_memory(err, "the notes");
}

/* Returns why oneDNN, though it is used, does not multiply quantised weights on this device; NULL:
 * it does, or oneDNN is not used, or the device's architecture is unknown. */
static const char *
onednn_note(const struct xm_program *p)
{
    const struct xm_device_info *device = xm_engine_info(p->engine);
    return p->config.use_onednn == XM_YES && device->arch != XM_ARCH_UNKNOWN
               ? xm_onednn_refuses_quantised(device)
               : NULL;
}

/* Replaces, in the text of the config rules that applied, the rule that chose oneDNN by the reason
 * why oneDNN is not used. */
static void
say_without_onednn(struct xm_strbuf *rules, const char *device, const char *why)
{
    static const char option[] = "GPU_USE_ONEDNN = ";
    struct xm_strbuf kept = {0};
    for (const char *line = xm_strbuf_text(rules); *line;) {
        const size_t n = strcspn(line, "\n");
        if (strncmp(line, option, sizeof(option) - 1) != 0)
            xm_strbuf_printf(&kept, "%.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
    xm_strbuf_printf(&kept, "%sNO: oneDNN's GPU engine cannot be used on %s: %s\n",
                     option, device, why);
    xm_strbuf_free(rules);
    *rules = kept;
}

/* Opens oneDNN if use_onednn is on, before any primitive asks for it. If it cannot be opened,
 * kernel variants of other families run instead, and the property and the rules' text become NO. A
 * user who has set the option is warned once, and the compile fails if the cause is another one
 * than XM_UNSUPPORTED. A plan on a counting engine leaves the option on, because the device that it
 * stands for may have oneDNN. */
static enum xm_status
open_onednn(struct xm_program *p, struct xm_strbuf *rules, struct xm_error *err)
{
    static atomic_bool warned;
    struct xm_error why = {.status = XM_OK};
    if (p->config.use_onednn != XM_YES)
        return XM_OK;
    if (xm_onednn_open(p->engine, &p->onednn, &why) == XM_OK) {
        if (onednn_note(p))
            xm_log(XM_LOG_INFO, "%s: xemoe's own kernels multiply quantised weights",
                   onednn_note(p));
        return XM_OK;
    }
    bool plans = xm_engine_only_counts(p->engine);
    bool insists = xm_config_user_set(&p->config, XM_OPTION_use_onednn);
    bool warns = insists && !plans && !atomic_exchange(&warned, true);
    xm_log(warns ? XM_LOG_WARNING : XM_LOG_INFO,
           "oneDNN's GPU engine cannot be used on %s: %s%s",
           xm_engine_info(p->engine)->name, why.text,
           warns ? ", so GPU_USE_ONEDNN=YES has no effect" : "");
    if (insists && why.status != XM_UNSUPPORTED)
        return xm_fail(err, why.status,
                       "%s: drop GPU_USE_ONEDNN=YES to run without oneDNN", why.text);
    if (plans)
        return XM_OK;
    p->config.use_onednn = XM_NO;
    say_without_onednn(rules, xm_engine_info(p->engine)->name, why.text);
    return XM_OK;
}

static enum xm_status
finalise_config(struct xm_program *p, const struct xm_graph *g, struct xm_error *err)
{
    struct xm_program_facts facts = facts_of(g);
    struct xm_strbuf why = {0};
    facts.is_stateless = p->is_stateless; /* the value by which passes have decided */
    enum xm_status s =
        xm_config_finalise(&p->config, xm_engine_info(p->engine), &facts, &why, err);
    if (s == XM_OK)
        s = open_onednn(p, &why, err);
    if (s == XM_OK && onednn_note(p))
        xm_strbuf_printf(&why, "%s: xemoe's own kernels multiply quantised weights\n",
                         onednn_note(p));
    p->rules_text = xm_strbuf_take(&why);
    XM_TRY(s);
    return p->rules_text ? XM_OK : xm_no_memory(err, "the rules' text");
}

static enum xm_status
keep_mappings(struct xm_program *p, const struct xm_graph *g, struct xm_error *err)
{
    p->mappings = xm_calloc(g->n_mappings + 1, sizeof(struct xm_mapping *));
    if (!p->mappings)
        return xm_no_memory(err, "the list of mappings");
    for (uint32_t i = 0; i < g->n_mappings; i++) {
        p->mappings[p->n_mappings++] = g->mappings[i];
        xm_mapping_ref(g->mappings[i]);
    }
    return XM_OK;
}

static void
drop_graph(struct xm_program *p, struct xm_graph *g)
{
    for (uint32_t i = 0; i < p->n_steps; i++)
        p->steps[i].node = NULL;
    for (uint32_t i = 0; i < p->n_values; i++)
        p->values[i].source = NULL;
    xm_graph_destroy(g);
}

/* Lowers the graph. If somebody watches the builds of kernels, first counts them on a counting
 * engine, so that the watcher knows how many there will be. */
static enum xm_status
lower(struct xm_program *p, struct xm_graph *g, struct xm_error *err)
{
    struct xm_program *counted =
        xm_build_is_watched() ? xm_planner_count_builds(p, g) : NULL;
    if (counted)
        xm_engine_expect_builds(p->engine, counted->engine);
    enum xm_status s = xm_lower(p, g, err);
    if (s == XM_OK)
        s = xm_batcher_build_choices(p, err);
    if (counted)
        xm_engine_expect_launches(p->engine, counted->engine);
    xm_program_unref(counted);
    return s;
}

/* Makes a program of the rewritten graph, which it owns from now on. `s`: the status of the steps
 * before. After a failure, of those steps or here, drops p and the graph. */
static enum xm_status
finish(struct xm_program *p, struct xm_graph *g, bool keep_graph, enum xm_status s,
       struct xm_program **out, struct xm_error *err)
{
    if (s == XM_OK)
        s = finalise_config(p, g, err);
    if (s == XM_OK)
        s = keep_mappings(p, g, err);
    if (s == XM_OK)
        s = xm_planner_fit(p, g, err);
    if (s == XM_OK)
        s = lower(p, g, err);
    if (s == XM_OK && p->config.profiling) {
        p->step_times = xm_label_times_create(p->n_steps);
        if (!p->step_times)
            s = xm_no_memory(err, "the times of a program");
    }
    if (s == XM_OK)
        s = xm_weight_pages_start(p, &p->weight_pages, err);
    if (s == XM_OK &&
        (keep_graph || p->n_host_steps || !xm_engine_only_counts(p->engine)))
        p->graph = g;
    else
        drop_graph(p, g);
    if (s != XM_OK) {
        xm_program_unref(p);
        return s;
    }
    *out = p;
    return XM_OK;
}

static struct xm_program *
new_program(struct xm_engine *engine, const struct xm_config *config)
{
    struct xm_program *p = xm_calloc(1, sizeof(*p));
    if (!p)
        return NULL;
    p->refs = 1;
    p->engine = engine;
    p->config = *config;
    xm_engine_ref(engine);
    return p;
}

enum xm_status
xm_program_create(struct xm_engine *engine, const struct xm_config *config,
                  struct xm_graph *g, const struct xm_compile_options *options,
                  struct xm_program **out, struct xm_error *err)
{
    struct xm_program *p = new_program(engine, config);
    if (!p) {
        xm_graph_destroy(g);
        return xm_no_memory(err, "a program");
    }
    p->is_part = options && options->replace;
    enum xm_status s = run_passes(p, g, options, err);
    if (s == XM_OK)
        s = keep_notes(p, g, err);
    if (s == XM_OK && options && options->replace)
        s = options->replace(options->replace_ctx, &g, err);
    return finish(p, g, options && options->keep_graph, s, out, err);
}

/* Copies reports and notes of the passes that have run in another process. */
static enum xm_status
take_reports(struct xm_program *p, const struct xm_rewritten *r, struct xm_error *err)
{
    p->is_imported = true;
    p->reports = xm_calloc(r->n_reports + 1, sizeof(*p->reports));
    p->notes_text = xm_strdup(r->notes);
    if (!p->reports || !p->notes_text)
        return xm_no_memory(err, "the passes' reports");
    p->n_reports = r->n_reports;
    for (size_t i = 0; i < r->n_reports; i++)
        p->reports[i] = r->reports[i];
    return XM_OK;
}

enum xm_status
xm_program_import(struct xm_engine *engine, const struct xm_config *config,
                  const struct xm_rewritten *rewritten, struct xm_program **out,
                  struct xm_error *err)
{
    struct xm_program *p = new_program(engine, config);
    if (!p) {
        xm_graph_destroy(rewritten->graph);
        return xm_no_memory(err, "a program");
    }
    return finish(p, rewritten->graph, true, take_reports(p, rewritten, err), out, err);
}
