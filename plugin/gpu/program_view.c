/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/program_view.h"

#include "plugin/gpu/describe.h"
#include "plugin/gpu/planner.h"
#include "plugin/lower/program_layers.h"

/* Copies a text to the view's arena; NULL stays NULL. False: no memory. */
static bool
copy_text(struct xm_program_view *v, const char *text, const char **out)
{
    *out = text ? xm_arena_strdup(&v->arena, text) : NULL;
    return *out || !text;
}

static bool
copy_strbuf(struct xm_program_view *v, const struct xm_strbuf *text, const char **out)
{
    return copy_text(v, xm_strbuf_text(text), out);
}

/* ---- values -------------------------------------------------------------------------- */

static const char *
port_of(const struct xm_port *ports, const uint32_t *values, uint32_t n,
        const struct xm_program *p, uint32_t root)
{
    for (uint32_t i = 0; i < n; i++) {
        if (xm_program_root(p, values[i]) == root)
            return ports[i].name;
    }
    return NULL;
}

static bool
view_value(struct xm_program_view *v, const struct xm_program *p, uint32_t i)
{
    struct xm_value_view *value = &v->values[i];
    const struct xm_type type = {p->values[i].element, p->values[i].shape};
    const struct xm_ports *ports = &p->ports;
    struct xm_strbuf text = {0};
    xm_type_print(&type, &text);
    *value = (struct xm_value_view){.root = xm_program_root(p, i),
                                    .maker = xm_program_maker(p, i)};
    value->is_input = p->values[value->root].place == XM_PLACE_INPUT;
    bool good = xm_strbuf_ok(&text) && copy_strbuf(v, &text, &value->type);
    xm_strbuf_free(&text);
    if (value->root != i)
        return good;
    return good &&
           copy_text(v, port_of(ports->inputs, p->input_values, ports->n_inputs, p, i),
                     &value->input) &&
           copy_text(v, port_of(ports->outputs, p->output_values, ports->n_outputs, p, i),
                     &value->output);
}

/* ---- steps --------------------------------------------------------------------------- */

static bool
view_step(struct xm_program_view *v, const struct xm_program *p,
          const struct xm_step_text *text, uint32_t i)
{
    const struct xm_step *s = &p->steps[i];
    struct xm_step_view *step = &v->steps[i];
    uint32_t *in = xm_arena_alloc(&v->arena, (s->n_in + 1) * sizeof(*in));
    for (uint32_t k = 0; in && k < s->n_in; k++)
        in[k] = s->in[k];
    step->in = in;
    step->n_in = s->n_in;
    step->on_host = s->kind == XM_STEP_HOST;
    step->weight_bytes = text->weight_bytes;
    return in && copy_text(v, s->op, &step->op) && copy_text(v, s->name, &step->name) &&
           copy_strbuf(v, &text->token, &step->token) &&
           copy_strbuf(v, &text->prompt, &step->prompt) &&
           copy_strbuf(v, &text->weights, &step->weights) &&
           copy_strbuf(v, &text->problems, &step->problems) &&
           copy_strbuf(v, &text->detail, &step->detail);
}

static enum xm_status
view_layers(struct xm_program_view *v, const struct xm_program *p,
            const struct xm_program_texts *texts, struct xm_error *err)
{
    struct xm_program_layers layers = {0};
    const char **signatures = xm_calloc(p->n_steps + 1, sizeof(char *));
    if (!signatures)
        return xm_no_memory(err, "the view of a program");
    for (uint32_t i = 0; i < p->n_steps; i++)
        signatures[i] = xm_strbuf_text(&texts->steps[i].signature);
    enum xm_status s = xm_program_find_layers(p, signatures, &layers, err);
    if (s == XM_OK) {
        v->n_layers = layers.n;
        v->layer_kind =
            xm_arena_alloc(&v->arena, (layers.n + 1) * sizeof(*v->layer_kind));
        s = v->layer_kind ? XM_OK : xm_no_memory(err, "the view of a program");
    }
    for (uint32_t i = 0; i < v->n_steps && s == XM_OK; i++)
        v->steps[i].block = layers.block[i];
    for (uint32_t i = 0; i < layers.n && s == XM_OK; i++)
        v->layer_kind[i] = layers.kind[i];
    xm_program_layers_free(&layers);
    xm_free(signatures);
    return s;
}

/* ---- all of it ----------------------------------------------------------------------- */

static enum xm_status
view(struct xm_program_view *v, struct xm_program *p, struct xm_program_texts *texts,
     struct xm_error *err)
{
    XM_TRY(xm_program_describe(p, texts, err));
    v->n_steps = p->n_steps;
    v->n_values = p->n_values;
    v->prompt_tokens = texts->prompt_tokens;
    v->steps = xm_arena_alloc(&v->arena, (p->n_steps + 1) * sizeof(*v->steps));
    v->values = xm_arena_alloc(&v->arena, (p->n_values + 1) * sizeof(*v->values));
    bool good = v->steps && v->values &&
                copy_text(v, xm_engine_info(p->engine)->name, &v->device);
    for (uint32_t i = 0; i < p->n_values && good; i++)
        good = view_value(v, p, i);
    for (uint32_t i = 0; i < p->n_steps && good; i++) {
        v->steps[i] = (struct xm_step_view){0};
        good = view_step(v, p, &texts->steps[i], i);
    }
    return good ? view_layers(v, p, texts, err)
                : xm_no_memory(err, "the view of a program");
}

enum xm_status
xm_program_view(const struct xm_device_info *info, const struct xm_config *config,
                const struct xm_graph *g, struct xm_program_view *out,
                struct xm_error *err)
{
    struct xm_graph *copy = NULL;
    struct xm_program *p = NULL;
    struct xm_program_texts texts = {0};
    *out = (struct xm_program_view){0};
    XM_TRY(xm_graph_clone(g, NULL, &copy, err));
    XM_TRY(xm_planner_compile_open(info, config, copy, &p, err));
    const enum xm_status s = view(out, p, &texts, err);
    xm_program_texts_free(&texts);
    xm_program_unref(p);
    return s;
}

void
xm_program_view_free(struct xm_program_view *v)
{
    xm_arena_free(&v->arena);
    *v = (struct xm_program_view){0};
}
