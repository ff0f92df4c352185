/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe info: what is in a model file; with -v also what it compiles to.
 */
#include "plugin/cli/info.h"
#include "plugin/cli/svg.h"

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

/* ---- the command ------------------------------------------------------------------- */

/* Takes the graph over. */
static enum xm_status
show(const struct xm_core *core, struct xm_graph *g, const struct args *a,
     struct xm_info *info, struct xm_error *err)
{
    struct xm_json_out j = {0};
    struct xm_compiled *compiled = NULL;
    enum xm_status s = XM_OK;
    xm_info_find(a->model, g, info);
    if (a->json) {
        xm_json_begin(&j);
        xm_info_add(&j, info);
    } else {
        xm_info_print(info, a->verbose);
    }
    info->graph = NULL;
    if (a->verbose)
        s = xm_core_compile(core, g, a->device, NULL, 0, NULL, &compiled, err);
    else
        xm_graph_destroy(g);
    if (compiled && a->json)
        xm_info_add_compiled(&j, compiled);
    else if (compiled)
        xm_info_print_compiled(compiled);
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
    struct xm_info *info = s == XM_OK ? xm_calloc(1, sizeof(*info)) : NULL;
    if (s == XM_OK && !info) {
        xm_graph_destroy(g);
        s = xm_fail(&err, XM_NO_MEMORY, "out of memory for the facts of a model");
    }
    if (s == XM_OK)
        s = show(core, g, &a, info, &err);
    xm_free(info);
    xm_core_destroy(core);
    return s == XM_OK ? xm_cli_flush() : xm_cli_failed(&err);
}
