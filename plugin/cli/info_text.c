/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plugin/cli/info.h"
#include "plugin/cli/quantity.h"
#include "plugin/program_util/lines.h"
#include "runtime/util/number.h"
#include "transformations/pipeline.h"

/* ---- numbers and names --------------------------------------------------------------- */

static void
print_row(struct xm_lines *o, const char *label, const struct xm_strbuf *text)
{
    xm_lines_add(o, "%-14s%s\n", label, xm_strbuf_text(text));
}

/* Prints a number from the graph, or else from config.json, or that it is not known. */
static void
print_number(struct xm_lines *o, const char *label, uint64_t graph, uint64_t config,
             const char *unit)
{
    if (graph)
        xm_lines_add(o, "%-14s%" PRIu64 "%s\n", label, graph, unit);
    else if (config)
        xm_lines_add(o, "%-14s%" PRIu64 "%s (config.json)\n", label, config, unit);
    else
        xm_lines_add(o, "%-14snot known\n", label);
}

/* ---- the model ----------------------------------------------------------------------- */

static void
print_family(struct xm_lines *o, const struct xm_info *info)
{
    const struct xm_hyper_parameters *c = &info->config;
    struct xm_strbuf text = {0};
    if (c->model_type[0])
        xm_strbuf_printf(&text, "%s%s%s%s", c->model_type, c->architecture[0] ? " (" : "",
                         c->architecture, c->architecture[0] ? ")" : "");
    else if (c->architecture[0])
        xm_strbuf_add(&text, c->architecture);
    else if (info->facts.family)
        xm_strbuf_printf(&text, "%s (from the graph; config.json does not name it)",
                         info->facts.family);
    else if (info->no_config.status == XM_NOT_FOUND)
        xm_strbuf_add(&text, "not known: config.json is missing");
    else
        xm_strbuf_printf(&text, "not known: %s",
                         info->no_config.text[0] ? info->no_config.text
                                                 : "config.json does not name it");
    print_row(o, "family", &text);
    xm_strbuf_clear(&text);
    xm_cli_add_name(&text, info->graph->name);
    print_row(o, "graph", &text);
    xm_strbuf_free(&text);
}

static void
print_parameters(struct xm_lines *o, const struct xm_model_facts *f)
{
    char all[XM_CLI_QUANTITY], active[XM_CLI_QUANTITY];
    if (f->active_parameters == f->parameters)
        xm_lines_add(o, "%-14s%s\n", "parameters", xm_cli_count_text(f->parameters, all));
    else
        xm_lines_add(o, "%-14s%s, of which %s are active for a token\n", "parameters",
                     xm_cli_count_text(f->parameters, all),
                     xm_cli_count_text(f->active_parameters, active));
}

/* Appends "3 layers: " if there are other kinds of layers. */
static void
add_layers(struct xm_strbuf *text, uint64_t layers, uint64_t all)
{
    if (layers != all)
        xm_strbuf_printf(text, "%" PRIu64 " layer%s: ", layers, xm_plural(layers));
}

static void
print_experts(struct xm_lines *o, const struct xm_info *info)
{
    const struct xm_model_facts *f = &info->facts;
    const struct xm_hyper_parameters *c = &info->config;
    struct xm_strbuf text = {0};
    for (uint32_t i = 0; i < f->n_experts; i++) {
        const struct xm_expert_facts *e = &f->experts[i];
        xm_strbuf_clear(&text);
        add_layers(&text, e->layers, f->layers);
        xm_strbuf_printf(
            &text, "%" PRIu64 ", of which %" PRIu64 " for each token, width %" PRIu64,
            e->experts, e->top_k, e->width);
        if (e->shared_width)
            xm_strbuf_printf(&text, "; one shared expert, width %" PRIu64,
                             e->shared_width);
        print_row(o, i ? "" : "experts", &text);
    }
    xm_strbuf_clear(&text);
    if (c->experts)
        xm_strbuf_printf(&text,
                         "%u, of which %u for each token, width %u (from config.json; "
                         "not recognised in the graph)",
                         c->experts, c->top_k, c->expert_width);
    else
        xm_strbuf_add(&text, "none");
    if (f->n_experts == 0)
        print_row(o, "experts", &text);
    xm_strbuf_free(&text);
}

static void
add_heads(struct xm_strbuf *text, const struct xm_attention_facts *a)
{
    xm_strbuf_printf(text, "%" PRIu64 " head%s of %" PRIu64, a->heads,
                     xm_plural(a->heads), a->head_size);
    if (a->value_head_size != a->head_size)
        xm_strbuf_printf(text, " (values %" PRIu64 ")", a->value_head_size);
    if (a->shares_a_cache)
        xm_strbuf_add(text, ", KV cache of an earlier layer");
    else
        xm_strbuf_printf(text, ", %" PRIu64 " KV head%s", a->kv_heads,
                         xm_plural(a->kv_heads));
    if (a->window)
        xm_strbuf_printf(text, ", sliding window of %" PRIu64, a->window);
}

static void
print_attention(struct xm_lines *o, const struct xm_info *info)
{
    const struct xm_model_facts *f = &info->facts;
    const struct xm_hyper_parameters *c = &info->config;
    struct xm_strbuf text = {0};
    for (uint32_t i = 0; i < f->n_attention; i++) {
        xm_strbuf_clear(&text);
        add_layers(&text, f->attention[i].layers, f->layers);
        add_heads(&text, &f->attention[i]);
        print_row(o, i ? "" : "attention", &text);
    }
    xm_strbuf_clear(&text);
    if (c->heads)
        xm_strbuf_printf(&text, "%u heads, %u KV heads (from config.json)", c->heads,
                         c->kv_heads ? c->kv_heads : c->heads);
    else
        xm_strbuf_add(&text, "not known");
    if (f->n_attention == 0)
        print_row(o, "attention", &text);
    xm_strbuf_free(&text);
}

static void
print_tokenizer(struct xm_lines *o, const struct xm_info *info)
{
    if (info->tokenizer_kind)
        xm_lines_add(o, "%-14s%s, %" PRIu64 " tokens\n", "tokenizer",
                     info->tokenizer_kind, info->tokenizer_size);
    else if (info->no_tokenizer.status == XM_NOT_FOUND)
        xm_lines_add(o, "%-14snone: there is no %s\n", "tokenizer", info->tokenizer_name);
    else
        xm_lines_add(o, "%-14snone: %s\n", "tokenizer", info->no_tokenizer.text);
}

static void
print_formats(struct xm_lines *o, const struct xm_model_facts *f)
{
    char bytes[XM_CLI_QUANTITY];
    for (uint32_t i = 0; i < f->n_formats; i++) {
        const struct xm_format_facts *k = &f->formats[i];
        char scales[64] = "";
        if (k->group == UINT64_MAX)
            snprintf(scales, sizeof(scales), "one scale per row");
        else if (k->group)
            snprintf(scales, sizeof(scales), "groups of %" PRIu64, k->group);
        xm_lines_add(o, "%-14s%-4s %-22s%-13s%10s %6.1f %%\n", i ? "" : "weights",
                     k->text, scales, k->has_zero_points ? "zero points" : "",
                     xm_cli_bytes_text(k->bytes, bytes),
                     f->bytes ? 100.0 * (double)k->bytes / (double)f->bytes : 0.0);
    }
}

static void
print_facts(struct xm_lines *o, const struct xm_info *info)
{
    const struct xm_model_facts *f = &info->facts;
    const struct xm_hyper_parameters *c = &info->config;
    char bytes[XM_CLI_QUANTITY];
    print_family(o, info);
    if (info->no_facts.text[0])
        xm_lines_add(o, "%-14snot known: %s\n", "parameters", info->no_facts.text);
    else
        print_parameters(o, f);
    print_number(o, "layers", c->layers > f->layers ? 0 : f->layers, c->layers, "");
    print_experts(o, info);
    print_attention(o, info);
    print_number(o, "hidden size", f->hidden, c->hidden, "");
    xm_lines_add(o, "%-14s", "context");
    if (c->context)
        xm_lines_add(o, "%u positions\n", c->context);
    else
        xm_lines_add(o, "not known\n");
    print_number(o, "vocabulary", f->vocabulary, c->vocabulary, "");
    print_tokenizer(o, info);
    print_formats(o, f);
    xm_lines_add(o, "%-14s%s\n", "files", xm_cli_bytes_text(info->file_bytes, bytes));
    for (size_t i = 0; i < info->n_disagreements; i++)
        xm_lines_add(o, "%-14s%s: %" PRIu64 " in the graph, %" PRIu64 " in config.json\n",
                     i ? "" : "disagreement", info->disagreements[i].what,
                     info->disagreements[i].graph, info->disagreements[i].config);
}

/* ---- the graph ----------------------------------------------------------------------- */

static void
print_ports(struct xm_lines *o, const struct xm_info *info, enum xm_op op,
            const char *label, bool all)
{
    struct xm_strbuf text = {0};
    uint32_t shown = 0;
    xm_for_each_node(n, info->graph)
    {
        if (n->op != op || (shown && !all))
            continue;
        xm_strbuf_clear(&text);
        xm_cli_add_name(&text, xm_info_port_name(n));
        while (text.n < 24)
            xm_strbuf_add(&text, " ");
        xm_strbuf_add(&text, " ");
        xm_type_print(&xm_info_port_value(n)->type, &text);
        print_row(o, shown++ ? "" : label, &text);
    }
    if (info->ops[op] > shown)
        xm_lines_add(o, "%-14s… %u in all\n", "", info->ops[op]);
    xm_strbuf_free(&text);
}

static void
print_counts(struct xm_lines *o, const struct xm_info *info)
{
    xm_lines_add(o, "%u operations:", info->graph->n_nodes);
    for (size_t i = 0; i < XM_OP_COUNT; i++) {
        if (info->ops[i])
            xm_lines_add(o, " %s %u", xm_op_info((enum xm_op)i)->text, info->ops[i]);
    }
    xm_lines_add(o, "\nconstants:\n");
    for (size_t i = 0; i < XM_ELEMENT_COUNT; i++) {
        if (info->constants[i])
            xm_lines_add(o, "  %-8s %6u tensors %14" PRIu64 " bytes\n",
                         xm_element_text((enum xm_element)i), info->constants[i],
                         info->constant_bytes[i]);
    }
}

static void
print_properties(struct xm_lines *o, const struct xm_graph *g)
{
    struct xm_strbuf text = {0};
    for (uint32_t i = 0; i < g->n_properties; i++) {
        xm_strbuf_clear(&text);
        xm_cli_add_name(&text, g->properties[i].key);
        xm_strbuf_add(&text, " = ");
        xm_cli_add_name(&text, g->properties[i].value);
        xm_lines_add(o, "%s\n", xm_strbuf_text(&text));
    }
    xm_strbuf_free(&text);
}

void
xm_info_print(const struct xm_info *info, bool verbose)
{
    struct xm_lines o = xm_lines_to(stdout);
    print_facts(&o, info);
    print_ports(&o, info, XM_OP_PARAMETER, "inputs", true);
    print_ports(&o, info, XM_OP_RESULT, "results", true);
    print_ports(&o, info, XM_OP_READ_VALUE, "states", verbose);
    if (verbose) {
        xm_lines_add(&o, "\n");
        print_counts(&o, info);
        print_properties(&o, info->graph);
    }
    xm_lines_end(&o);
}

/* ---- the compiled program ------------------------------------------------------------------ */

enum { MOE_FORMS = 3 };
static const char *const moe_forms[MOE_FORMS] = {"moe_3gemm_fused_compressed",
                                                 "gather_matmul", "moe_router"};

struct step_counts {
    uint32_t of_form[MOE_FORMS], on_host;
};

static void
count_step(const struct xm_step_fact *step, void *ctx)
{
    struct step_counts *n = ctx;
    n->on_host += step->on_host;
    for (size_t f = 0; f < MOE_FORMS; f++)
        n->of_form[f] += strcmp(step->op, moe_forms[f]) == 0;
}

static void
print_moe_forms(struct xm_lines *o, const struct step_counts *n, const char *notes)
{
    bool any = false;
    xm_lines_add(o, "mixture of experts:");
    for (size_t f = 0; f < MOE_FORMS; f++) {
        if (n->of_form[f])
            xm_lines_add(o, " %s %u", moe_forms[f], n->of_form[f]);
        any |= n->of_form[f] > 0;
    }
    xm_lines_add(o, "%s\n%s", any ? "" : " no block of experts is recognised", notes);
}

void
xm_info_print_compiled(struct xm_compiled *c)
{
    struct xm_lines o = xm_lines_to(stdout);
    xm_lines_add(&o, "\npasses:\n");
    for (size_t i = 0; i < c->n_reports; i++) {
        const struct xm_pass_report *r = &c->reports[i];
        xm_lines_add(&o, "  %-28s %s, %u nodes\n", r->pass->public_name,
                     r->skipped    ? "skipped"
                     : r->progress ? "changed"
                                   : "no change",
                     r->nodes_after);
    }
    if (c->ops->steps) {
        struct step_counts n = {0};
        c->ops->steps(c, count_step, &n);
        print_moe_forms(&o, &n, c->notes ? c->notes : "");
        xm_lines_add(&o, "rules:\n%s", c->rules ? c->rules : "");
        xm_lines_add(&o, "steps (%u on the host):\n", n.on_host);
    }
    struct xm_strbuf steps = {0};
    c->ops->print(c, &steps);
    xm_lines_add(&o, "%s", xm_strbuf_text(&steps));
    xm_strbuf_free(&steps);
    xm_lines_end(&o);
}
