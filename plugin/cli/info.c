/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe info: prints what a model file, or a compiled model's file, contains; with -v also the
 * program that it compiles to.
 */
#include <inttypes.h>
#include <string.h>

#include "plugin/cli/chip.h"
#include "plugin/cli/info.h"
#include "plugin/cli/kernels.h"
#include "plugin/cli/picture.h"
#include "plugin/mesh/mesh_plan.h"
#include "plugin/program_util/svg.h"
#include "runtime/util/log.h"

struct args {
    const char *model, *device, *device_as, *svg, *split;
    uint64_t layer;        /* XM_PICTURE_OF_ALL: not given */
    const char *cache_dir; /* of compiled kernels; "": no cache */
    bool json, verbose, metadata;
};

/* clang-format off */
#define AT(member) offsetof(struct args, member)
static const struct xm_cli_option options[] = {
    XM_CLI_GROUP("The model", "xemoe info model.gguf --metadata"),
    { 'm', "model",   XM_CLI_TEXT, AT(model),   "PATH", "the model; the first word without an option means the same; default: $XM_MODEL" },
    { 0,   "metadata", XM_CLI_FLAG, AT(metadata), NULL, "print only the keys and tensors of a GGUF file" },
    XM_CLI_GROUP("What it compiles to", "xemoe info model.gguf -v --svg steps.svg --layer 0"),
    { 'd', "device",  XM_CLI_WORD, AT(device),  "NAME", "the device for which -v and --svg compile (GPU)", "-dev", "GPU CPU REFERENCE" },
    { 0,   "device-as", XM_CLI_WORD, AT(device_as), "CHIP", "with --svg: an Intel GPU that need not be in this computer: mtl_u, dg2, bmg …", NULL, NULL, xm_cli_add_chips },
    { 0,   "split",   XM_CLI_CHOICE, AT(split), "WHAT", "with -v and several devices (-d GPU.0,GPU.1): how they share the model, as in generate", NULL, XM_CLI_SPLITS },
    { 'v', "verbose", XM_CLI_FLAG, AT(verbose), NULL,   "print all properties; compile the model, and print passes and steps" },
    { 0,   "svg",     XM_CLI_WORD, AT(svg),     "FILE", "draw the compiled steps, one layer of each kind (needs dot of graphviz)" },
    { 0,   "layer",   XM_CLI_WHOLE, AT(layer),  "N",    "with --svg: draw only layer N, counted from 0" },
    XM_CLI_GROUP("Output", "xemoe info model.gguf --json"),
    { 0,   "json",    XM_CLI_FLAG, AT(json),    NULL,   "print the result as one JSON object" },
};
#undef AT
/* clang-format on */

/* Returns the only property that an environment variable sets. */
static struct xm_cli_setting
numerics_setting(void)
{
    return (struct xm_cli_setting){"XM_NUMERICS", "XM_NUMERICS", xm_env("XM_NUMERICS")};
}

/* ---- the picture --------------------------------------------------------------------- */

static enum xm_status
draw_view(const struct args *a, const struct xm_program_view *v, int *code,
          struct xm_error *err)
{
    struct xm_strbuf dot = {0};
    if (a->layer != XM_PICTURE_OF_ALL && a->layer >= v->n_layers) {
        *code = XM_EXIT_USAGE;
        return xm_fail(err, XM_INVALID,
                       "there is no layer %" PRIu64 ": the model has %u, counted from 0",
                       a->layer, v->n_layers);
    }
    xm_picture_print(v, a->model, a->layer, &dot);
    const enum xm_status s = xm_strbuf_ok(&dot) ? xm_cli_write_svg(&dot, a->svg, err)
                                                : xm_no_memory(err, "a picture");
    xm_strbuf_free(&dot);
    return s;
}

/* Draws the program, compiled as `plan` does: without loading weights or building kernels. *code:
 * the exit code for a wrong option that only the program reveals. */
static enum xm_status
draw(const struct args *a, const struct xm_device_info *info, const struct xm_graph *g,
     int *code, struct xm_error *err)
{
    struct xm_config config;
    struct xm_program_view view;
    const struct xm_cli_setting numerics = numerics_setting();
    xm_config_init(&config);
    if (numerics.value)
        XM_TRY(xm_config_set(&config, numerics.key, numerics.value, err));
    enum xm_status s = xm_program_view(info, &config, g, &view, err);
    if (s == XM_OK)
        s = draw_view(a, &view, code, err);
    xm_program_view_free(&view);
    return s;
}

/* ---- the command ------------------------------------------------------------------- */

/* Prints the model; owns the graph from now on. */
static enum xm_status
show(const struct xm_core *core, struct xm_package *p, struct xm_graph *g,
     const struct args *a, struct xm_info *info, struct xm_error *err)
{
    struct xm_json_out j = {0};
    struct xm_compiled *compiled = NULL;
    enum xm_status s = XM_OK;
    xm_info_find(p, g, info);
    if (a->json) {
        xm_json_begin(&j);
        xm_info_add(&j, info);
    } else {
        xm_info_print(info, a->verbose);
    }
    info->graph = NULL;
    if (a->verbose) {
        const struct xm_cli_setting numerics = numerics_setting();
        const char *policy = xm_cli_split_policy(a->split);
        struct xm_property list[3] = {{"CACHE_DIR", a->cache_dir}};
        uint32_t n = 1;
        if (numerics.value)
            list[n++] = (struct xm_property){numerics.key, numerics.value};
        if (policy)
            list[n++] = (struct xm_property){"MODEL_DISTRIBUTION_POLICY", policy};
        s = xm_core_compile(core, g, a->device, list, n, NULL, &compiled, err);
    } else {
        xm_graph_destroy(g);
    }
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

static int
check_options(const struct args *a)
{
    if (a->svg && strcmp(a->svg, "-") == 0)
        return xm_cli_usage(
            "option --svg needs a file, because the text goes to standard output");
    if (a->layer != XM_PICTURE_OF_ALL && !a->svg)
        return xm_cli_usage("option --layer needs --svg FILE");
    if (a->device_as && !a->svg)
        return xm_cli_usage("option --device-as needs --svg FILE");
    if (a->split && !a->verbose)
        return xm_cli_usage("option --split needs -v");
    xm_cli_check_split(a->split, a->device);
    if (a->svg && xm_mesh_list(a->device))
        return xm_cli_usage(
            "option --svg draws the steps of one device: give only one of '%.60s'",
            a->device);
    if (a->metadata && (a->svg || a->verbose))
        return xm_cli_usage("option --metadata can be combined only with --json");
    /* with -v the model is also compiled for a device */
    const struct xm_chip_args chip = {.device =
                                          a->device_as && !a->verbose ? a->device : NULL,
                                      .device_as = a->device_as};
    if (xm_cli_check_chip(&chip) != XM_EXIT_OK)
        return XM_EXIT_USAGE;
    const struct xm_cli_setting numerics = numerics_setting();
    return xm_cli_check_settings(&numerics, 1);
}

/* ---- a compiled file ------------------------------------------------------------------- */

/* Opens the model that the file was compiled from, if it still exists. */
static enum xm_status
look_at_model(const struct xm_import *from, struct xm_package **package,
              struct xm_graph **g, struct xm_error *err)
{
    struct xm_strbuf path = {0};
    enum xm_status s = xm_info_model_of(from, &path, err);
    if (s == XM_OK)
        s = xm_package_open(xm_strbuf_text(&path), package, err);
    if (s == XM_OK)
        s = xm_package_read_graph(*package, NULL, g, err);
    xm_strbuf_free(&path);
    return s;
}

static void
say_no_model(const struct args *a, struct xm_json_out *j, const struct xm_error *why)
{
    if (a->json)
        xm_json_add_text(j, xm_json_add_object(j, NULL, "reasons"), "model", why->text,
                         strlen(why->text));
    else
        printf("%-14snot read: %s\n", "model", why->text);
}

static enum xm_status
import(const struct xm_core *core, const struct xm_import *from, const struct args *a,
       struct xm_json_out *j, struct xm_error *err)
{
    const struct xm_property cache = {"CACHE_DIR", a->cache_dir};
    struct xm_compiled *compiled = NULL;
    XM_TRY(xm_core_import(core, from, a->device, &cache, 1, &compiled, err));
    if (a->json)
        xm_info_add_compiled(j, compiled);
    else
        xm_info_print_compiled(compiled);
    xm_compiled_unref(compiled);
    return XM_OK;
}

static enum xm_status
show_compiled(const struct xm_core *core, const struct xm_import *from,
              const struct args *a, struct xm_info *info, struct xm_error *err)
{
    struct xm_json_out j = {0};
    struct xm_blob_facts facts;
    struct xm_package *package = NULL;
    struct xm_graph *g = NULL;
    struct xm_error why = {0};
    enum xm_status s = xm_blob_facts(from, &facts, err);
    if (s == XM_OK && a->json) {
        xm_json_begin(&j);
        xm_info_add_blob(&j, &facts);
    } else if (s == XM_OK) {
        xm_info_print_blob(&facts);
    }
    if (s == XM_OK && look_at_model(from, &package, &g, &why) == XM_OK) {
        xm_info_find(package, g, info);
        if (a->json)
            xm_info_add(&j, info);
        else
            xm_info_print(info, a->verbose);
        info->graph = NULL;
    } else if (s == XM_OK) {
        say_no_model(a, &j, &why);
    }
    if (s == XM_OK && a->verbose)
        s = import(core, from, a, &j, err);
    if (s == XM_OK && a->json)
        s = xm_json_print(&j, err);
    if (a->json)
        xm_json_end(&j);
    xm_graph_destroy(g);
    xm_package_close(package);
    xm_blob_facts_free(&facts);
    return s;
}

static enum xm_status
show_model(const struct xm_core *core, const struct args *a,
           const struct xm_device_info *chip, struct xm_info *info, int *code,
           struct xm_error *err)
{
    struct xm_package *package = NULL;
    struct xm_graph *g = NULL;
    enum xm_status s = xm_cli_open_package(a->model, &package, err);
    if (s == XM_OK)
        s = xm_package_read_graph(package, NULL, &g, err);
    if (s == XM_OK && a->svg)
        s = draw(a, chip, g, code, err);
    if (s == XM_OK)
        s = show(core, package, g, a, info, err);
    else
        xm_graph_destroy(g);
    xm_package_close(package);
    return s;
}

/* Reads, draws and prints. A missing device is reported before anything is read. */
static int
run(const struct args *a, struct xm_info *info)
{
    struct xm_error err = {0};
    struct xm_core *core = NULL;
    struct xm_plugin *plugin = NULL;
    struct xm_device_info chip;
    struct xm_import from;
    uint32_t index = 0;
    int code = XM_EXIT_OK;
    enum xm_status s = xm_core_create(&core, &err);
    bool good = s == XM_OK;
    if (good && (a->verbose || a->device))
        good = xm_core_find(core, a->device, &plugin, &index, &err) == XM_OK;
    if (good && a->svg)
        good = xm_cli_find_chip(a->device, a->device_as, &chip, &err) == XM_OK;
    if (!good) {
        xm_core_destroy(core);
        return xm_cli_no_device("-d", a->device, &err);
    }
    code = xm_cli_check_ranks(core, a->device);
    if (code != XM_EXIT_OK) {
        xm_core_destroy(core);
        return code;
    }
    const bool is_compiled =
        xm_import_open(a->model, &from, NULL) == XM_OK && xm_blob_recognises(&from);
    if (is_compiled && a->svg) {
        code = XM_EXIT_USAGE;
        s = xm_fail(&err, XM_INVALID, "option --svg needs a model, not a compiled model");
    } else if (is_compiled) {
        s = show_compiled(core, &from, a, info, &err);
        if (s != XM_OK)
            xm_error_prefix(&err, "%.150s", a->model);
    } else {
        s = show_model(core, a, &chip, info, &code, &err);
    }
    xm_import_close(&from);
    xm_core_destroy(core);
    if (code != XM_EXIT_OK)
        return xm_cli_usage("%s", err.text);
    return s == XM_OK ? xm_cli_flush() : xm_cli_failed(&err);
}

int
xm_cli_info(int argc, char **argv)
{
    static const struct xm_cli_spec spec = {
        .usage = "xemoe info MODEL [-v] [--json] [--svg FILE [--layer N]] [--metadata] "
                 "[options]",
        .about =
            "Shows the properties of a model: family, parameters, layers, experts, "
            "heads,\ncontext, formats of its weights, inputs, results and states, from "
            "its graph and\nthe config.json beside it. With -v also all operations and "
            "properties, and what\nthe model compiles to: passes, mixture-of-experts "
            "blocks (with the reason if one\nis not fused), steps. --svg draws the steps "
            "with their kernels. For a file of\n'xemoe compile': also its model and "
            "device, its options and the files it needs.\n",
        .own = options,
        .n_own = XM_ARRAY_LEN(options),
        XM_CLI_MODEL(offsetof(struct args, model)),
    };
    struct args a = {.layer = XM_PICTURE_OF_ALL};
    struct xm_error err = {0};
    bool done;
    int code = xm_cli_begin(&spec, argc, argv, &a, &done);
    if (!done)
        code = check_options(&a);
    if (done || code != XM_EXIT_OK)
        return code;
    if (a.metadata)
        return xm_info_metadata(a.model, a.json);
    struct xm_strbuf cache = {0};
    struct xm_info *info = xm_calloc(1, sizeof(*info));
    if (!info)
        xm_no_memory(&err, "the facts of a model");
    if (info && a.verbose)
        xm_cli_cache_open(NULL, &cache, &err);
    a.cache_dir = xm_strbuf_text(&cache);
    code = err.status == XM_OK ? run(&a, info) : xm_cli_failed(&err);
    xm_strbuf_free(&cache);
    xm_free(info);
    return code;
}
