/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe info: what is in a model file; with -v also what it compiles to.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plugin/cli/cli.h"
#include "plugin/cli/json_out.h"
#include "plugin/cli/svg.h"
#include "transformations/graph/text.h"

struct args {
    const char *model, *device, *svg;
    bool json, verbose;
};

/* clang-format off */
#define AT(member) offsetof(struct args, member)
static const struct xm_cli_option options[] = {
    { 'd', "device",  XM_CLI_TEXT, AT(device),  "NAME", "what -v compiles for (GPU)" },
    { 'v', "verbose", XM_CLI_FLAG, AT(verbose), NULL,   "all properties; compile, and print passes and steps" },
    { 0,   "svg",     XM_CLI_TEXT, AT(svg),     "FILE", "draw the graph (needs graphviz's dot)" },
    { 0,   "json",    XM_CLI_FLAG, AT(json),    NULL,   "the result as one JSON object" },
};
#undef AT
/* clang-format on */

/* Where the texts go: the same walk serves both forms of output. */
struct counts {
    uint32_t ops[XM_OP_COUNT];
    uint32_t weights[XM_ELEMENT_COUNT];
    uint64_t bytes[XM_ELEMENT_COUNT];
};

static void
count_graph(const struct xm_graph *g, struct counts *c)
{
    memset(c, 0, sizeof(*c));
    xm_for_each_node(n, g)
    {
        c->ops[n->op]++;
        if (n->op != XM_OP_CONST)
            continue;
        enum xm_element e = n->out[0].type.element;
        c->weights[e]++;
        c->bytes[e] += n->attr.data.n_bytes;
    }
}

/* ---- text -------------------------------------------------------------------------- */

static void
print_node_type(const char *what, const struct xm_node *n)
{
    const struct xm_value *v = n->n_out ? &n->out[0] : xm_in(n, 0);
    const char *name = v->n_names                                  ? v->names[0]
                       : n->attr.name.name && n->attr.name.name[0] ? n->attr.name.name
                                                                   : n->name;
    struct xm_strbuf type = {0};
    xm_type_print(&v->type, &type);
    printf("%-8s %-20s %s\n", what, name, xm_strbuf_text(&type));
    xm_strbuf_free(&type);
}

static void
print_ports(const struct xm_graph *g, const struct counts *c, bool all_states)
{
    bool shown = false;
    xm_for_each_node(n, g)
    {
        if (n->op == XM_OP_PARAMETER)
            print_node_type("input", n);
    }
    xm_for_each_node(n, g)
    {
        if (n->op == XM_OP_RESULT)
            print_node_type("result", n);
    }
    xm_for_each_node(n, g)
    {
        if (n->op == XM_OP_READ_VALUE && (all_states || !shown)) {
            print_node_type("state", n);
            shown = true;
        }
    }
    if (c->ops[XM_OP_READ_VALUE] > 1 && !all_states)
        printf("%-8s … %u states in all\n", "", c->ops[XM_OP_READ_VALUE]);
}

static void
print_counts(const struct xm_graph *g, const struct counts *c)
{
    printf("%u operations:", g->n_nodes);
    for (size_t i = 0; i < XM_OP_COUNT; i++) {
        if (c->ops[i])
            printf(" %s %u", xm_op_info((enum xm_op)i)->text, c->ops[i]);
    }
    printf("\nconstants:\n");
    for (size_t i = 0; i < XM_ELEMENT_COUNT; i++) {
        if (c->weights[i])
            printf("  %-8s %6u tensors %14" PRIu64 " bytes\n",
                   xm_element_text((enum xm_element)i), c->weights[i], c->bytes[i]);
    }
}

/* What says how the file was made; -v prints every property. */
static bool
is_highlight(const char *key)
{
    static const char *const keys[] = {"Runtime_version", "nncf/weight_compression/mode",
                                       "nncf/weight_compression/group_size",
                                       "optimum/optimum_intel_version",
                                       "optimum/transformers_version"};
    for (size_t i = 0; i < XM_ARRAY_LEN(keys); i++) {
        if (strcmp(keys[i], key) == 0)
            return true;
    }
    return false;
}

static void
print_properties(const struct xm_graph *g, bool all)
{
    for (uint32_t i = 0; i < g->n_properties; i++) {
        if (all || is_highlight(g->properties[i].key))
            printf("%s = %s\n", g->properties[i].key, g->properties[i].value);
    }
}

static void
print_model(const struct xm_graph *g, const struct counts *c, bool verbose)
{
    printf("model \"%s\"\n", g->name);
    print_ports(g, c, verbose);
    print_counts(g, c);
    print_properties(g, verbose);
}

/* ---- JSON -------------------------------------------------------------------------- */

static void
add_nodes(struct xm_json_out *j, const struct xm_graph *g, enum xm_op op, const char *key)
{
    yyjson_mut_val *list = xm_json_add_array(j, NULL, key);
    xm_for_each_node(n, g)
    {
        if (n->op != op)
            continue;
        const struct xm_value *v = n->n_out ? &n->out[0] : xm_in(n, 0);
        const char *name = v->n_names ? v->names[0] : n->name;
        struct xm_strbuf type = {0};
        xm_type_print(&v->type, &type);
        yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
        xm_json_add_text(j, o, "name", name, strlen(name));
        xm_json_add_text(j, o, "type", xm_strbuf_text(&type), type.n);
        xm_strbuf_free(&type);
    }
}

static void
add_model(struct xm_json_out *j, const struct xm_graph *g, const struct counts *c)
{
    xm_json_add_text(j, NULL, "name", g->name, strlen(g->name));
    add_nodes(j, g, XM_OP_PARAMETER, "inputs");
    add_nodes(j, g, XM_OP_RESULT, "results");
    add_nodes(j, g, XM_OP_READ_VALUE, "states");
    yyjson_mut_val *ops = xm_json_add_object(j, NULL, "operations");
    for (size_t i = 0; i < XM_OP_COUNT; i++) {
        if (c->ops[i])
            xm_json_add_whole(j, ops, xm_op_info((enum xm_op)i)->text, c->ops[i]);
    }
    yyjson_mut_val *bytes = xm_json_add_object(j, NULL, "constant_bytes");
    for (size_t i = 0; i < XM_ELEMENT_COUNT; i++) {
        if (c->weights[i])
            xm_json_add_whole(j, bytes, xm_element_text((enum xm_element)i), c->bytes[i]);
    }
    yyjson_mut_val *properties = xm_json_add_object(j, NULL, "properties");
    for (uint32_t i = 0; i < g->n_properties; i++)
        xm_json_add_text(j, properties, g->properties[i].key, g->properties[i].value,
                         strlen(g->properties[i].value));
}

static void
add_compiled(struct xm_json_out *j, const struct xm_compiled *c)
{
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
    if (!c->program)
        return;
    xm_json_add_text(j, NULL, "notes", c->program->notes_text,
                     strlen(c->program->notes_text));
    yyjson_mut_val *steps = xm_json_add_array(j, NULL, "steps");
    for (uint32_t i = 0; i < c->program->n_steps; i++) {
        const struct xm_step *s = &c->program->steps[i];
        yyjson_mut_val *o = xm_json_add_object(j, steps, NULL);
        xm_json_add_text(j, o, "op", s->op, strlen(s->op));
        xm_json_add_text(j, o, "name", s->name, strlen(s->name));
        xm_json_add_bool(j, o, "host", s->kind == XM_STEP_HOST);
    }
}

/* ---- what it compiles to ----------------------------------------------------------- */

static void
print_moe_forms(const struct xm_program *p)
{
    static const char *const forms[] = {"moe_3gemm_fused_compressed", "gather_matmul",
                                        "moe_router"};
    bool any = false;
    printf("mixture of experts:");
    for (size_t f = 0; f < XM_ARRAY_LEN(forms); f++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < p->n_steps; i++)
            n += strcmp(p->steps[i].op, forms[f]) == 0;
        if (n)
            printf(" %s %u", forms[f], n);
        any |= n > 0;
    }
    printf("%s\n%s", any ? "" : " no block of experts was recognised", p->notes_text);
}

static void
print_compiled(struct xm_compiled *c)
{
    printf("\npasses:\n");
    for (size_t i = 0; i < c->n_reports; i++) {
        const struct xm_pass_report *r = &c->reports[i];
        printf("  %-28s %s, %u nodes\n", r->pass->public_name,
               r->skipped    ? "skipped"
               : r->progress ? "changed"
                             : "no change",
               r->nodes_after);
    }
    if (c->program) {
        print_moe_forms(c->program);
        printf("rules:\n%s", c->program->rules_text ? c->program->rules_text : "");
        printf("steps (%u on the host):\n", c->program->n_host_steps);
    }
    struct xm_strbuf steps = {0};
    c->ops->print(c, &steps);
    fwrite(xm_strbuf_text(&steps), 1, steps.n, stdout);
    xm_strbuf_free(&steps);
}

/* ---- the command ------------------------------------------------------------------- */

/* Takes the graph over. */
static enum xm_status
show(const struct xm_core *core, struct xm_graph *g, const struct args *a,
     struct xm_error *err)
{
    struct counts c;
    struct xm_json_out j = {0};
    struct xm_compiled *compiled = NULL;
    enum xm_status s = XM_OK;
    count_graph(g, &c);
    if (a->json) {
        xm_json_begin(&j);
        add_model(&j, g, &c);
    } else {
        print_model(g, &c, a->verbose);
    }
    if (a->verbose)
        s = xm_core_compile(core, g, a->device, NULL, 0, NULL, &compiled, err);
    else
        xm_graph_destroy(g);
    if (compiled && a->json)
        add_compiled(&j, compiled);
    else if (compiled)
        print_compiled(compiled);
    xm_compiled_unref(compiled);
    if (s == XM_OK && a->json)
        s = xm_json_print(&j, err);
    if (a->json)
        xm_json_end(&j);
    return s;
}

int
xm_cli_info(int argc, char **argv)
{
    static const struct xm_cli_spec spec = {
        .usage = "xemoe info PATH [-v] [--json] [--svg FILE] [--device NAME]",
        .about =
            "Inputs, results, states, operations and constants of a model. With -v also\n"
            "what it compiles to: passes, forms of the mixture of experts, steps. A "
            "block\n"
            "of experts that is not fused comes with the reason.\n",
        .own = options,
        .n_own = XM_ARRAY_LEN(options),
        .operand = "PATH",
        .operand_offset = offsetof(struct args, model),
    };
    struct args a = {0};
    struct xm_error err = {0};
    struct xm_core *core = NULL;
    struct xm_plugin *plugin = NULL;
    struct xm_graph *g = NULL;
    uint32_t index = 0;
    bool done;
    int code = xm_cli_begin(&spec, argc, argv, &a, &done);
    if (done)
        return code;
    enum xm_status s = xm_core_create(&core, &err);
    if (s == XM_OK && a.verbose && xm_core_find(core, a.device, &plugin, &index, &err)) {
        xm_cli_failed(&err);
        xm_core_destroy(core);
        return XM_EXIT_DEVICE;
    }
    if (s == XM_OK)
        s = xm_core_read_model(core, a.model, NULL, &g, &err);
    if (s == XM_OK && a.svg) {
        s = xm_cli_write_svg(g, a.svg, &err);
        if (s != XM_OK)
            xm_graph_destroy(g);
    }
    if (s == XM_OK)
        s = show(core, g, &a, &err);
    xm_core_destroy(core);
    return s == XM_OK ? xm_cli_flush() : xm_cli_failed(&err);
}
