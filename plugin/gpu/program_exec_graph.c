/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/gpu/program_exec_graph.h"

#include <string.h>

#include "plugin/gpu/describe.h"
#include "plugin/gpu/planner.h"
#include "plugin/lower/program_layers.h"
#include "runtime/label_times.h"

const char *
xm_step_precision(const struct xm_program *p, const struct xm_step *s)
{
    for (uint32_t i = 0; i < s->n_in; i++) {
        const struct xm_program_value *v = &p->values[s->in[i]];
        if (xm_element_is_float(v->element) &&
            p->values[xm_program_root(p, s->in[i])].place != XM_PLACE_CONST)
            return xm_element_text(v->element);
    }
    return xm_element_text(s->n_out ? p->values[s->out[0]].element : XM_DYNAMIC);
}

struct builder {
    const struct xm_program *p;
    const struct xm_program_texts *texts;
    struct xm_exec_graph *out;
    struct xm_arena *arena;
};

static bool
copy_strbuf(struct builder *b, struct xm_strbuf *text, const char **out)
{
    *out = xm_strbuf_ok(text) ? xm_arena_strdup(b->arena, xm_strbuf_text(text)) : NULL;
    xm_strbuf_free(text);
    return *out != NULL;
}

/* ---- kernels ------------------------------------------------------------------------- */

static void
add_words(const char *words, struct xm_strbuf *list)
{
    while (*words) {
        const size_t n = strcspn(words, " ");
        if (n && !xm_list_has(xm_strbuf_text(list), ' ', words, n))
            xm_strbuf_printf(list, "%s%.*s", list->n ? " " : "", (int)n, words);
        words += n + (words[n] == ' ');
    }
}

/* Sets n->kernels to the names of the step's kernels, each once: first those for one token, then
 * those for a prompt. */
static bool
find_kernels(struct builder *b, const struct xm_step *s, struct xm_exec_node *n)
{
    struct xm_strbuf list = {0};
    if (n->on_host)
        xm_strbuf_add(&list, "host_reference");
    else
        add_words(xm_strbuf_text(&b->texts->steps[s->id].token), &list);
    if (!n->on_host)
        add_words(xm_strbuf_text(&b->texts->steps[s->id].prompt), &list);
    return copy_strbuf(b, &list, &n->kernels);
}

static bool
find_layers(struct builder *b, const struct xm_step *s, struct xm_exec_node *n)
{
    struct xm_strbuf list = {0};
    for (uint32_t i = 0; s->region && i < s->region->n_nodes; i++)
        xm_layer_origins(s->region->nodes[i], &list);
    if (s->node)
        xm_layer_origins(s->node, &list);
    return copy_strbuf(b, &list, &n->layers);
}

/* ---- edges --------------------------------------------------------------------------- */

/* Sets *out to the node and result that compute a value: an input (the first nodes) or a step (the
 * nodes behind them). False: neither does. */
static bool
find_maker(const struct xm_program *p, uint32_t value, struct xm_exec_edge *out)
{
    const uint32_t root = xm_program_root(p, value), maker = xm_program_maker(p, value);
    for (uint32_t i = 0; i < p->ports.n_inputs; i++) {
        if (xm_program_root(p, p->input_values[i]) == root) {
            *out = (struct xm_exec_edge){i, 0};
            return true;
        }
    }
    if (maker == XM_NO_VALUE)
        return false;
    const struct xm_step *s = &p->steps[maker];
    *out = (struct xm_exec_edge){p->ports.n_inputs + maker, 0};
    for (uint32_t i = 0; i < s->n_out && xm_program_root(p, s->out[i]) != root; i++)
        out->result += !p->values[s->out[i]].is_form;
    return true;
}

static bool
add_operands(struct builder *b, const struct xm_step *s, struct xm_exec_node *n)
{
    struct xm_exec_edge *in = xm_arena_alloc(b->arena, (s->n_in + 1) * sizeof(*in));
    struct xm_exec_port *out = xm_arena_alloc(b->arena, (s->n_out + 1) * sizeof(*out));
    for (uint32_t i = 0; in && i < s->n_in; i++) {
        struct xm_exec_edge edge;
        /* a value that this step changes in place has no edge from the step itself */
        if (find_maker(b->p, s->in[i], &edge) && edge.node < b->p->ports.n_inputs + s->id)
            in[n->n_in++] = edge;
    }
    for (uint32_t i = 0; out && i < s->n_out; i++) {
        const struct xm_program_value *v = &b->p->values[s->out[i]];
        if (!v->is_form) /* a form is a copy of another result */
            out[n->n_out++] = xm_exec_port_of(v->element, &v->shape);
    }
    n->in = in;
    n->out = out;
    return in && out;
}

/* ---- nodes --------------------------------------------------------------------------- */

static bool
add_step(struct builder *b, const struct xm_step *s)
{
    struct xm_exec_node *n = &b->out->nodes[b->out->n++];
    *n = (struct xm_exec_node){.type = xm_layer_type(s->op, s->node),
                               .precision = xm_step_precision(b->p, s),
                               .on_host = s->kind == XM_STEP_HOST};
    if (b->p->step_times)
        n->mean_ns = xm_label_times_mean_ns(b->p->step_times, s->id);
    n->name = xm_arena_strdup(b->arena, s->name);
    return n->name && find_kernels(b, s, n) && find_layers(b, s, n) &&
           add_operands(b, s, n);
}

static bool
add_port(struct builder *b, const struct xm_port *port, bool is_output, uint32_t value)
{
    struct xm_exec_node *n = &b->out->nodes[b->out->n++];
    struct xm_exec_edge *in = xm_arena_alloc(b->arena, sizeof(*in));
    struct xm_exec_port *out = xm_arena_alloc(b->arena, sizeof(*out));
    *n = (struct xm_exec_node){.type = is_output ? "Output" : "Input",
                               .kernels = "",
                               .precision = xm_element_text(port->type.element),
                               .in = in,
                               .out = out,
                               .n_out = !is_output};
    n->name = n->layers = xm_arena_strdup(b->arena, port->name);
    if (!in || !out || !n->name)
        return false;
    *out = xm_exec_port_of(port->type.element, &port->type.shape);
    n->n_in = is_output && find_maker(b->p, value, in);
    return true;
}

static bool
build(struct builder *b)
{
    const struct xm_ports *ports = &b->p->ports;
    const uint32_t n = ports->n_inputs + b->p->n_steps + ports->n_outputs;
    b->out->nodes = xm_arena_alloc(b->arena, (n + 1) * sizeof(*b->out->nodes));
    bool good = b->out->nodes != NULL;
    for (uint32_t i = 0; i < ports->n_inputs && good; i++)
        good = add_port(b, &ports->inputs[i], false, b->p->input_values[i]);
    for (uint32_t i = 0; i < b->p->n_steps && good; i++)
        good = add_step(b, &b->p->steps[i]);
    for (uint32_t i = 0; i < ports->n_outputs && good; i++)
        good = add_port(b, &ports->outputs[i], true, b->p->output_values[i]);
    b->out->n_steps = b->p->n_steps;
    return good;
}

/* Describes the steps of p by the same program on a counting engine, which need not run kernels. */
static enum xm_status
describe(const struct xm_program *p, struct xm_program_texts *texts, struct xm_error *err)
{
    struct xm_program *counted = NULL;
    XM_TRY(xm_planner_lower(p, p->graph, &counted, err));
    enum xm_status s = xm_program_describe(counted, texts, err);
    if (s == XM_OK && counted->n_steps != p->n_steps)
        s = xm_fail(err, XM_DEVICE,
                    "the program has %u steps, but the program that is compiled to look "
                    "up its kernels has %u",
                    p->n_steps, counted->n_steps);
    xm_program_unref(counted);
    return s;
}

enum xm_status
xm_program_exec_graph(const struct xm_program *p, struct xm_exec_graph *out,
                      struct xm_error *err)
{
    struct xm_program_texts texts = {0};
    *out = (struct xm_exec_graph){0};
    struct builder b = {.p = p, .texts = &texts, .out = out, .arena = &out->arena};
    enum xm_status s = describe(p, &texts, err);
    if (s == XM_OK && !build(&b))
        s = xm_no_memory(err, "an execution graph");
    xm_program_texts_free(&texts);
    return s;
}
