/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "plugin/cli/info.h"
#include "transformations/pipeline.h"

static void
add_nodes(struct xm_json_out *j, const struct xm_graph *g, enum xm_op op, const char *key)
{
    yyjson_mut_val *list = xm_json_add_array(j, NULL, key);
    xm_for_each_node(n, g)
    {
        if (n->op != op)
            continue;
        const struct xm_value *v = xm_info_port_value(n);
        const char *name = xm_info_port_name(n);
        struct xm_strbuf type = {0};
        xm_type_print(&v->type, &type);
        yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
        xm_json_add_text(j, o, "name", name, strlen(name));
        xm_json_add_text(j, o, "type", xm_strbuf_text(&type), type.n);
        xm_strbuf_free(&type);
    }
}

static void
add_experts(struct xm_json_out *j, const struct xm_model_facts *f)
{
    yyjson_mut_val *list = xm_json_add_array(j, NULL, "experts");
    for (uint32_t i = 0; i < f->n_experts; i++) {
        const struct xm_expert_facts *e = &f->experts[i];
        yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
        xm_json_add_whole(j, o, "layers", e->layers);
        xm_json_add_whole(j, o, "experts", e->experts);
        xm_json_add_whole(j, o, "top_k", e->top_k);
        xm_json_add_whole(j, o, "width", e->width);
        xm_json_add_whole(j, o, "shared_width", e->shared_width);
    }
}

static void
add_attention(struct xm_json_out *j, const struct xm_model_facts *f)
{
    yyjson_mut_val *list = xm_json_add_array(j, NULL, "attention");
    for (uint32_t i = 0; i < f->n_attention; i++) {
        const struct xm_attention_facts *a = &f->attention[i];
        yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
        xm_json_add_whole(j, o, "layers", a->layers);
        xm_json_add_whole(j, o, "heads", a->heads);
        xm_json_add_whole(j, o, "kv_heads", a->kv_heads);
        xm_json_add_whole(j, o, "head_size", a->head_size);
        xm_json_add_whole(j, o, "value_head_size", a->value_head_size);
        xm_json_add_whole(j, o, "window", a->window);
        xm_json_add_bool(j, o, "shares_a_cache", a->shares_a_cache);
    }
}

static void
add_formats(struct xm_json_out *j, const struct xm_model_facts *f)
{
    yyjson_mut_val *list = xm_json_add_array(j, NULL, "weights");
    for (uint32_t i = 0; i < f->n_formats; i++) {
        const struct xm_format_facts *k = &f->formats[i];
        yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
        xm_json_add_text(j, o, "element", k->text, strlen(k->text));
        if (k->group == UINT64_MAX)
            xm_json_add_text(j, o, "group", "row", 3);
        else
            xm_json_add_whole(j, o, "group", k->group);
        xm_json_add_bool(j, o, "zero_points", k->has_zero_points);
        xm_json_add_whole(j, o, "parameters", k->parameters);
        xm_json_add_whole(j, o, "bytes", k->bytes);
    }
}

/* Adds a number unless it is not known. */
static void
add_known(struct xm_json_out *j, const char *key, uint64_t graph, uint64_t config)
{
    if (graph || config)
        xm_json_add_whole(j, NULL, key, graph ? graph : config);
}

static void
add_text(struct xm_json_out *j, const char *key, const char *text)
{
    if (text[0])
        xm_json_add_text(j, NULL, key, text, strlen(text));
}

/* Adds the reasons why facts are not known. */
static void
add_reasons(struct xm_json_out *j, const struct xm_info *info)
{
    const struct {
        const char *key;
        const struct xm_error *why;
    } rows[] = {{"facts", &info->no_facts},
                {"config", &info->no_config},
                {"tokenizer", &info->no_tokenizer}};
    yyjson_mut_val *o = xm_json_add_object(j, NULL, "reasons");
    for (size_t i = 0; i < XM_ARRAY_LEN(rows); i++) {
        const char *text = rows[i].why->text;
        if (text[0])
            xm_json_add_text(j, o, rows[i].key, text, strlen(text));
    }
}

static void
add_facts(struct xm_json_out *j, const struct xm_info *info)
{
    const struct xm_model_facts *f = &info->facts;
    const struct xm_hyper_parameters *c = &info->config;
    add_text(j, "family",
             c->model_type[0] || c->architecture[0] || !f->family ? c->model_type
                                                                  : f->family);
    add_text(j, "architecture", c->architecture);
    add_known(j, "parameters", f->parameters, 0);
    add_known(j, "active_parameters", f->active_parameters, 0);
    add_known(j, "layers", c->layers > f->layers ? 0 : f->layers, c->layers);
    add_known(j, "hidden_size", f->hidden, c->hidden);
    add_known(j, "context", 0, c->context);
    add_known(j, "vocabulary", f->vocabulary, c->vocabulary);
    add_experts(j, f);
    add_attention(j, f);
    add_formats(j, f);
    add_known(j, "weight_bytes", f->bytes, 0);
    add_known(j, "file_bytes", info->file_bytes, 0);
    add_reasons(j, info);
    if (info->tokenizer_kind) {
        yyjson_mut_val *o = xm_json_add_object(j, NULL, "tokenizer");
        xm_json_add_text(j, o, "kind", info->tokenizer_kind,
                         strlen(info->tokenizer_kind));
        xm_json_add_whole(j, o, "size", info->tokenizer_size);
    }
    yyjson_mut_val *list = xm_json_add_array(j, NULL, "disagreements");
    for (size_t i = 0; i < info->n_disagreements; i++) {
        const struct xm_info_disagreement *d = &info->disagreements[i];
        yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
        xm_json_add_text(j, o, "what", d->what, strlen(d->what));
        xm_json_add_whole(j, o, "graph", d->graph);
        xm_json_add_whole(j, o, "config", d->config);
    }
}

void
xm_info_add(struct xm_json_out *j, const struct xm_info *info)
{
    const struct xm_graph *g = info->graph;
    xm_json_add_text(j, NULL, "name", g->name, strlen(g->name));
    add_facts(j, info);
    add_nodes(j, g, XM_OP_PARAMETER, "inputs");
    add_nodes(j, g, XM_OP_RESULT, "results");
    add_nodes(j, g, XM_OP_READ_VALUE, "states");
    yyjson_mut_val *ops = xm_json_add_object(j, NULL, "operations");
    for (size_t i = 0; i < XM_OP_COUNT; i++) {
        if (info->ops[i])
            xm_json_add_whole(j, ops, xm_op_info((enum xm_op)i)->text, info->ops[i]);
    }
    yyjson_mut_val *bytes = xm_json_add_object(j, NULL, "constant_bytes");
    for (size_t i = 0; i < XM_ELEMENT_COUNT; i++) {
        if (info->constants[i])
            xm_json_add_whole(j, bytes, xm_element_text((enum xm_element)i),
                              info->constant_bytes[i]);
    }
    yyjson_mut_val *properties = xm_json_add_object(j, NULL, "properties");
    for (uint32_t i = 0; i < g->n_properties; i++)
        xm_json_add_text(j, properties, g->properties[i].key, g->properties[i].value,
                         strlen(g->properties[i].value));
}

struct step_list {
    struct xm_json_out *j;
    yyjson_mut_val *list;
};

static void
add_step(const struct xm_step_fact *step, void *ctx)
{
    const struct step_list *l = ctx;
    yyjson_mut_val *o = xm_json_add_object(l->j, l->list, NULL);
    xm_json_add_text(l->j, o, "op", step->op, strlen(step->op));
    xm_json_add_text(l->j, o, "name", step->name, strlen(step->name));
    xm_json_add_bool(l->j, o, "host", step->on_host);
}

void
xm_info_add_compiled(struct xm_json_out *j, struct xm_compiled *c)
{
    struct xm_strbuf devices = {0};
    if (c->ops->get_property(c, "EXECUTION_DEVICES", &devices, NULL) == XM_OK)
        xm_json_add_parts(j, NULL, "devices", xm_strbuf_text(&devices), ",");
    xm_strbuf_free(&devices);
    yyjson_mut_val *list = xm_json_add_array(j, NULL, "passes");
    for (size_t i = 0; i < c->n_reports; i++) {
        const struct xm_pass_report *r = &c->reports[i];
        yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
        xm_json_add_text(j, o, "name", r->pass->public_name,
                         strlen(r->pass->public_name));
        xm_json_add_bool(j, o, "changed", r->progress);
        xm_json_add_bool(j, o, "skipped", r->skipped);
        xm_json_add_whole(j, o, "nodes_after", r->nodes_after);
    }
    if (!c->ops->steps)
        return;
    xm_json_add_parts(j, NULL, "notes", c->notes ? c->notes : "", "\n");
    xm_json_add_parts(j, NULL, "rules", c->rules ? c->rules : "", "\n");
    struct step_list steps = {j, xm_json_add_array(j, NULL, "steps")};
    c->ops->steps(c, add_step, &steps);
}
