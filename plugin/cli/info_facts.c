/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cli/info.h"

const char *
xm_info_port_name(const struct xm_node *n)
{
    const struct xm_value *v = xm_info_port_value(n);
    if (v->n_names)
        return v->names[0];
    return n->attr.name.name && n->attr.name.name[0] ? n->attr.name.name : n->name;
}

const struct xm_value *
xm_info_port_value(const struct xm_node *n)
{
    return n->n_out ? &n->out[0] : xm_in(n, 0);
}

static void
count_graph(const struct xm_graph *g, struct xm_info *out)
{
    xm_for_each_node(n, g)
    {
        out->ops[n->op]++;
        if (n->op != XM_OP_CONST)
            continue;
        enum xm_element e = n->out[0].type.element;
        out->constants[e]++;
        out->constant_bytes[e] += n->attr.data.n_bytes;
    }
}

/* ---- beside the graph ---------------------------------------------------------------- */

static void
look_at_package(struct xm_package *p, struct xm_info *out)
{
    out->file_bytes = xm_package_file_bytes(p);
    xm_package_read(p, XM_PACKAGE_FACTS, &out->no_config);
    out->config = p->facts;
    out->tokenizer_name = p->reader->tokenizer;
    if (xm_package_read(p, XM_PACKAGE_TOKENIZER, &out->no_tokenizer) != XM_OK)
        return;
    out->tokenizer_kind = xm_tokenizer_kind(p->tokenizer);
    out->tokenizer_size = xm_tokenizer_vocab_size(p->tokenizer);
}

/* ---- graph and config.json ----------------------------------------------------------- */

static void
compare(struct xm_info *out, const char *what, uint64_t graph, uint64_t config)
{
    if (graph && config && graph != config &&
        out->n_disagreements < XM_INFO_DISAGREEMENTS)
        out->disagreements[out->n_disagreements++] =
            (struct xm_info_disagreement){what, graph, config};
}

/* Compares experts. A model may have several kinds of layers, of which config.json may describe
 * one. */
static void
compare_experts(struct xm_info *out)
{
    const struct xm_model_facts *f = &out->facts;
    const struct xm_hyper_parameters *c = &out->config;
    bool experts = false, top_k = false, width = false;
    for (uint32_t i = 0; i < f->n_experts; i++) {
        experts |= f->experts[i].experts == c->experts;
        top_k |= f->experts[i].top_k == c->top_k;
        width |= f->experts[i].width == c->expert_width;
    }
    compare(out, "experts", experts ? 0 : f->experts[0].experts, c->experts);
    compare(out, "experts per token", top_k ? 0 : f->experts[0].top_k, c->top_k);
    compare(out, "width of an expert", width ? 0 : f->experts[0].width, c->expert_width);
}

static void
compare_attention(struct xm_info *out)
{
    const struct xm_model_facts *f = &out->facts;
    const struct xm_hyper_parameters *c = &out->config;
    bool heads = false, kv = false, size = false, window = false;
    for (uint32_t i = 0; i < f->n_attention; i++) {
        const struct xm_attention_facts *a = &f->attention[i];
        heads |= a->heads == c->heads;
        kv |= a->kv_heads == c->kv_heads;
        size |= a->head_size == c->head_size || a->value_head_size == c->head_size;
        window |= a->window == c->window;
    }
    compare(out, "heads", heads ? 0 : f->attention[0].heads, c->heads);
    compare(out, "KV heads", kv ? 0 : f->attention[0].kv_heads, c->kv_heads);
    compare(out, "head size", size ? 0 : f->attention[0].head_size, c->head_size);
    compare(out, "sliding window", window ? 0 : f->attention[0].window, c->window);
}

static void
compare_all(struct xm_info *out)
{
    const struct xm_model_facts *f = &out->facts;
    const struct xm_hyper_parameters *c = &out->config;
    /* layers with another kind of attention are not counted in the graph */
    compare(out, "layers", f->layers > c->layers ? f->layers : 0, c->layers);
    compare(out, "hidden size", f->hidden, c->hidden);
    compare(out, "vocabulary", f->vocabulary, c->vocabulary);
    compare_experts(out);
    compare_attention(out);
}

void
xm_info_find(struct xm_package *p, const struct xm_graph *g, struct xm_info *out)
{
    *out = (struct xm_info){.graph = g};
    count_graph(g, out);
    look_at_package(p, out);
    xm_model_facts(g, &out->facts, &out->no_facts);
    compare_all(out);
}
