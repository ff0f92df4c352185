/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/stat.h>

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

/* ---- files --------------------------------------------------------------------------- */

static uint64_t
bytes_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
}

/* The graph's file and, of the same name, the weights'. */
static void
measure_files(const char *path, struct xm_info *out)
{
    struct xm_strbuf xml = {0}, bin = {0};
    struct stat st;
    xm_strbuf_add(&xml, path);
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        xm_strbuf_add(&xml, "/openvino_model.xml");
    const char *text = xm_strbuf_text(&xml), *ending = strrchr(text, '.');
    if (ending)
        xm_strbuf_add_n(&bin, text, (size_t)(ending - text));
    xm_strbuf_add(&bin, ".bin");
    out->file_bytes = bytes_of(text);
    if (ending && strcmp(ending, ".bin") != 0)
        out->file_bytes += bytes_of(xm_strbuf_text(&bin));
    xm_strbuf_free(&xml);
    xm_strbuf_free(&bin);
}

static void
look_at_tokenizer(const char *folder, struct xm_info *out)
{
    struct xm_strbuf path = {0};
    struct xm_tokenizer *t = NULL;
    xm_strbuf_printf(&path, "%s/tokenizer.json", folder);
    if (xm_tokenizer_load(xm_strbuf_text(&path), &t, &out->no_tokenizer) == XM_OK) {
        out->tokenizer_kind = xm_tokenizer_kind(t);
        out->tokenizer_size = xm_tokenizer_vocab_size(t);
        xm_tokenizer_free(t);
    }
    xm_strbuf_free(&path);
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

/* A model has several kinds of layers, config.json may name one of them. */
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
    compare(out, "experts for each token", top_k ? 0 : f->experts[0].top_k, c->top_k);
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
    compare(out, "heads of keys and values", kv ? 0 : f->attention[0].kv_heads,
            c->kv_heads);
    compare(out, "head size", size ? 0 : f->attention[0].head_size, c->head_size);
    compare(out, "sliding window", window ? 0 : f->attention[0].window, c->window);
}

static void
compare_all(struct xm_info *out)
{
    const struct xm_model_facts *f = &out->facts;
    const struct xm_hyper_parameters *c = &out->config;
    /* Layers without attention of the usual kind are not counted in the graph. */
    compare(out, "layers", f->layers > c->layers ? f->layers : 0, c->layers);
    compare(out, "hidden size", f->hidden, c->hidden);
    compare(out, "vocabulary", f->vocabulary, c->vocabulary);
    compare_experts(out);
    compare_attention(out);
}

void
xm_info_find(const char *path, const struct xm_graph *g, struct xm_info *out)
{
    struct xm_strbuf folder = {0};
    *out = (struct xm_info){.graph = g};
    count_graph(g, out);
    measure_files(path, out);
    xm_cli_model_folder(path, &folder);
    xm_hyper_parameters_load(xm_strbuf_text(&folder), &out->config, &out->no_config);
    look_at_tokenizer(xm_strbuf_text(&folder), out);
    xm_model_facts(g, &out->facts, &out->no_facts);
    compare_all(out);
    xm_strbuf_free(&folder);
}
