/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/gpu/describe.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/gpu/planner.h"
#include "plugin/gpu/request_run.h"

enum { KERNELS_BYTES = 512, PROMPT_TOKENS = 512 };

/* ---- kernels ------------------------------------------------------------------------- */

static void
add_kernels(const struct xm_request *r, const struct xm_step *s, struct xm_strbuf *out)
{
    struct xm_operand o[XM_STEP_OPERANDS];
    char text[KERNELS_BYTES] = "";
    if (!s->primitive && s->kind != XM_STEP_COPY) {
        xm_strbuf_add(out, s->kind == XM_STEP_HOST ? "host reference" : "on the host");
        return;
    }
    if (s->kind != XM_STEP_COPY)
        xm_request_operands(r, s, o);
    xm_primitive_describe(s->primitive, o, text, sizeof(text));
    xm_strbuf_add(out, text);
}

static enum xm_status
find_kernels(struct xm_program *p, struct xm_program_texts *out, struct xm_error *err)
{
    struct xm_request *r = NULL;
    const uint32_t many =
        p->config.ubatch < PROMPT_TOKENS ? p->config.ubatch : PROMPT_TOKENS;
    XM_TRY(xm_request_create(p, &r, err));
    out->prompt_tokens = many;
    enum xm_status s = xm_planner_feed(r, many, err);
    for (uint32_t i = 0; i < p->n_steps && s == XM_OK; i++)
        add_kernels(r, &p->steps[i], &out->steps[i].prompt);
    if (s == XM_OK)
        s = xm_planner_feed(r, 1, err);
    for (uint32_t i = 0; i < p->n_steps && s == XM_OK; i++)
        add_kernels(r, &p->steps[i], &out->steps[i].token);
    xm_request_destroy(r);
    return s;
}

/* ---- weights and attributes ---------------------------------------------------------- */

static void
add_weight(const struct xm_weight *w, struct xm_strbuf *out)
{
    xm_strbuf_add(out, "[");
    if (w->experts > 1)
        xm_strbuf_printf(out, "%" PRIu64 ", ", w->experts);
    xm_strbuf_printf(out, "%" PRIu64 ", %" PRIu64 "] %s", w->rows, w->cols,
                     xm_weight_format_text(w));
    if (w->group == w->cols)
        xm_strbuf_add(out, ", a scale a row");
    else if (w->group)
        xm_strbuf_printf(out, ", groups of %" PRIu64, w->group);
    xm_strbuf_add(out, "\n");
}

static void
find_weights(const struct xm_node *n, struct xm_step_text *t)
{
    for (uint32_t i = 0; n && i < n->n_in; i++) {
        const struct xm_node *w = xm_in(n, i)->node;
        if (w->op != XM_OP_WEIGHT)
            continue;
        add_weight(&w->attr.weight, &t->weights);
        t->weight_bytes += xm_weight_bytes(&w->attr.weight);
    }
}

static void
describe_attention(const struct xm_program *p, const struct xm_step *s,
                   struct xm_strbuf *out)
{
    const struct xm_attention_attr *a = &s->node->attr.attention;
    const struct xm_kv_layer *kv = &p->kv[s->layer];
    const struct xm_shape *q = &p->values[s->operand[XM_ATTENTION_Q].value].shape;
    xm_strbuf_printf(out, "%" PRId64 " heads of %" PRId64 ", %u KV head%s\n", q->dim[2].n,
                     q->dim[3].n, kv->heads, kv->heads == 1 ? "" : "s");
    if (a->window)
        xm_strbuf_printf(out, "sliding window of %" PRId64 "\n", a->window);
    xm_strbuf_printf(out, "%s", xm_element_text(kv->k_element));
    if (kv->v_element != kv->k_element)
        xm_strbuf_printf(out, " and %s", xm_element_text(kv->v_element));
    xm_strbuf_printf(
        out, " cache%s\n",
        s->operand[XM_ATTENTION_K].value == XM_NO_VALUE ? " of a layer before" : "");
}

static void
describe_experts(const struct xm_moe_attr *a, struct xm_strbuf *out)
{
    xm_strbuf_printf(out,
                     "%" PRId64 " experts, %" PRId64 " for a token, width %" PRId64 "\n",
                     a->experts, a->routing.top_k, a->inter);
}

/* Appends the names of a row chain's operations, without their operands. */
static void
describe_chain(const char *steps, struct xm_strbuf *out)
{
    const char *at = steps;
    while (*at) {
        at += strncmp(at, "out ", 4) == 0 ? 4 : 0;
        xm_strbuf_printf(out, "%s%.*s", at == steps || out->n == 0 ? "" : ", ",
                         (int)strcspn(at, " ;"), at);
        at += strcspn(at, ";");
        at += strspn(at, "; ");
    }
    xm_strbuf_add(out, "\n");
}

static void
find_detail(const struct xm_program *p, const struct xm_step *s, struct xm_step_text *t)
{
    if (!s->node)
        return;
    if (s->kind == XM_STEP_ATTENTION)
        describe_attention(p, s, &t->detail);
    else if (s->node->op == XM_OP_MOE_3GEMM_FUSED_COMPRESSED)
        describe_experts(&s->node->attr.moe, &t->detail);
    else if (s->node->op == XM_OP_ROW_CHAIN)
        describe_chain(s->node->attr.row_chain.steps, &t->detail);
}

/* ---- problems ------------------------------------------------------------------------- */

/* Returns whether problems of `xemoe bench --kernels` can have the weight's format. */
static bool
has_problems(const struct xm_weight *w)
{
    return xm_weight_formats[w->format].block_bytes > 0 ||
           w->format == XM_WEIGHT_ELEMENTS;
}

/* Appends the weight's format, " q4_0" or " u4 g128", then the element type of the activations. */
static void
add_types_of_product(const struct xm_weight *w, const char *src, struct xm_strbuf *out)
{
    xm_strbuf_printf(out, " %s", xm_weight_format_text(w));
    if (w->group)
        xm_strbuf_printf(out, " g%" PRIu64, w->group);
    xm_strbuf_printf(out, " %s\n", src);
}

static void
add_attention_problem(const struct xm_program *p, const struct xm_step *s,
                      const char *src, struct xm_strbuf *out)
{
    const struct xm_kv_layer *kv = &p->kv[s->layer];
    const struct xm_shape *q = &p->values[s->operand[XM_ATTENTION_Q].value].shape;
    if (kv->d == kv->dv && kv->k_element == kv->v_element)
        xm_strbuf_printf(out, "attention Q=%" PRId64 " KV=%u D=%u P=1024 %s %s\n",
                         q->dim[2].n, kv->heads, kv->d, xm_element_text(kv->k_element),
                         src);
}

/* Appends the problem of a product of n with weight w, if it has one. Equal lines may be added
 * several times; their reader drops repeated ones. */
static void
add_product_problem(const struct xm_node *n, const struct xm_weight *w, const char *src,
                    struct xm_strbuf *out)
{
    const struct xm_moe_attr *a = &n->attr.moe;
    const bool is_moe = n->op == XM_OP_MOE_3GEMM_FUSED_COMPRESSED && w->experts > 1;
    const bool is_linear =
        (n->op == XM_OP_LINEAR || n->op == XM_OP_MATMUL) && w->experts == 1;
    if (!has_problems(w) || (!is_moe && !is_linear))
        return;
    if (is_moe)
        xm_strbuf_printf(out, "moe E=%" PRId64 " K=%" PRId64 " H=%" PRId64 " I=%" PRId64,
                         a->experts, a->routing.top_k, a->hidden, a->inter);
    else
        xm_strbuf_printf(out, "linear N=%" PRIu64 " K=%" PRIu64, w->rows, w->cols);
    add_types_of_product(w, src, out);
}

/* The step's first operand is the activations. A linear layer with several weights has one problem,
 * that of the first weight, which decides the kernel; of experts each weight has its own. */
void
xm_step_problems(const struct xm_program *p, const struct xm_step *s,
                 struct xm_strbuf *out)
{
    const struct xm_node *n = s->node;
    if (!n || s->n_in == 0 || !s->primitive || s->kind == XM_STEP_COPY)
        return;
    const size_t before = out->n;
    const char *src = xm_element_text(p->values[s->in[0]].element);
    if (s->kind == XM_STEP_ATTENTION)
        add_attention_problem(p, s, src, out);
    const bool is_moe = n->op == XM_OP_MOE_3GEMM_FUSED_COMPRESSED;
    for (uint32_t i = 0; i < n->n_in && (is_moe || out->n == before); i++) {
        if (xm_in(n, i)->node->op == XM_OP_WEIGHT)
            add_product_problem(n, &xm_in(n, i)->node->attr.weight, src, out);
    }
}

/* ---- signatures ---------------------------------------------------------------------- */

static int
by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Appends the types of the operands, sorted, because models list the projections of a layer in
 * different orders. */
static enum xm_status
add_types(const struct xm_program *p, const struct xm_step *s, struct xm_strbuf *out,
          struct xm_error *err)
{
    const uint32_t n = s->n_in + s->n_out;
    char **texts = xm_calloc(n + 1, sizeof(char *));
    bool good = texts != NULL;
    for (uint32_t i = 0; i < n && good; i++) {
        const uint32_t id = i < s->n_in ? s->in[i] : s->out[i - s->n_in];
        const struct xm_type type = {p->values[id].element, p->values[id].shape};
        struct xm_strbuf text = {0};
        xm_type_print(&type, &text);
        texts[i] = xm_strbuf_take(&text);
        good = texts[i] != NULL;
    }
    if (good)
        qsort(texts, n, sizeof(*texts), by_text);
    for (uint32_t i = 0; texts && i < n; i++) {
        xm_strbuf_printf(out, "%s\n", good ? texts[i] : "");
        xm_free(texts[i]);
    }
    xm_free(texts);
    return good ? XM_OK : xm_no_memory(err, "a step's types");
}

/* Appends the lines (the step's weights) sorted, because models list the projections of a layer in
 * different orders. */
static enum xm_status
add_sorted_lines(const struct xm_strbuf *lines, struct xm_strbuf *out,
                 struct xm_error *err)
{
    char *texts[XM_LINEAR_N_IN + XM_MOE_N_IN], *next = NULL;
    struct xm_strbuf copy = {0};
    size_t n = 0;
    xm_strbuf_add(&copy, xm_strbuf_text(lines));
    char *text = xm_strbuf_take(&copy);
    for (char *line = text; line && *line && n < XM_ARRAY_LEN(texts); line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        texts[n++] = line;
    }
    qsort(texts, n, sizeof(*texts), by_text);
    for (size_t i = 0; i < n; i++)
        xm_strbuf_printf(out, "%s\n", texts[i]);
    xm_free(text);
    return text ? XM_OK : xm_no_memory(err, "a step's weights");
}

/* Appends the node's attributes without strings, because they are names of states, which differ
 * from layer to layer. Only the string of a row chain is its operations, and is appended. */
static void
add_attributes(const struct xm_node *node, struct xm_strbuf *out)
{
    size_t n = 0;
    const struct xm_attr_info *rows = node ? xm_op_attrs(node->op, &n) : NULL;
    for (size_t i = 0; i < n; i++) {
        if (rows[i].kind == XM_ATTR_STRING && node->op != XM_OP_ROW_CHAIN)
            continue;
        xm_attr_print(&node->attr, &rows[i], out);
        xm_strbuf_add(out, " ");
    }
}

static enum xm_status
find_signature(const struct xm_program *p, const struct xm_step *s,
               struct xm_step_text *t, struct xm_error *err)
{
    xm_strbuf_printf(&t->signature, "%s\n%s\n%s\n%s", s->op, xm_strbuf_text(&t->token),
                     xm_strbuf_text(&t->prompt), xm_strbuf_text(&t->detail));
    XM_TRY(add_sorted_lines(&t->weights, &t->signature, err));
    XM_TRY(add_types(p, s, &t->signature, err));
    add_attributes(s->node, &t->signature);
    return XM_OK;
}

/* ---- all of it ----------------------------------------------------------------------- */

static bool
is_complete(const struct xm_step_text *t)
{
    return xm_strbuf_ok(&t->token) && xm_strbuf_ok(&t->prompt) &&
           xm_strbuf_ok(&t->weights) && xm_strbuf_ok(&t->detail) &&
           xm_strbuf_ok(&t->problems) && xm_strbuf_ok(&t->signature);
}

enum xm_status
xm_program_describe(struct xm_program *p, struct xm_program_texts *out,
                    struct xm_error *err)
{
    *out = (struct xm_program_texts){.steps =
                                         xm_calloc(p->n_steps + 1, sizeof(*out->steps))};
    if (!out->steps)
        return xm_no_memory(err, "the texts of a program");
    out->n = p->n_steps;
    XM_TRY(find_kernels(p, out, err));
    for (uint32_t i = 0; i < p->n_steps; i++) {
        struct xm_step_text *t = &out->steps[i];
        find_weights(p->steps[i].node, t);
        find_detail(p, &p->steps[i], t);
        xm_step_problems(p, &p->steps[i], &t->problems);
        XM_TRY(find_signature(p, &p->steps[i], t, err));
        if (!is_complete(t))
            return xm_no_memory(err, "the texts of a program");
    }
    return XM_OK;
}

void
xm_program_texts_free(struct xm_program_texts *t)
{
    for (uint32_t i = 0; i < t->n; i++) {
        xm_strbuf_free(&t->steps[i].token);
        xm_strbuf_free(&t->steps[i].prompt);
        xm_strbuf_free(&t->steps[i].weights);
        xm_strbuf_free(&t->steps[i].detail);
        xm_strbuf_free(&t->steps[i].problems);
        xm_strbuf_free(&t->steps[i].signature);
    }
    xm_free(t->steps);
    *t = (struct xm_program_texts){0};
}
