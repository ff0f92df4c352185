/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe plan: computes the memory that a model needs, whether it fits, and what to change if it
 * does not.
 *
 * Nothing is allocated on a device: the model is compiled on an engine that only counts memory
 * (plugin/memory_planner.h). Each piece of advice was verified in the same way.
 */
#include "plugin/cli/plan_command.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plugin/cli/info.h"
#include "plugin/cli/kernels.h"
#include "plugin/cli/plan_forecast.h"
#include "plugin/exported.h"
#include "plugin/program_util/lines.h"
#include "plugin/program_util/progress.h"
#include "runtime/util/log.h"

enum { MOST_REQUESTS = 1 << 10, MOST_PROMPT = 1 << 17, USUAL_PROMPT = 512 };

/* clang-format off */
#define AT(member) offsetof(struct xm_plan_args, member)
static const struct xm_cli_option options[] = {
    XM_CLI_GROUP("The model and its device", "xemoe plan model.gguf --device-as bmg --memory 12000"),
    { 'm', "model",     XM_CLI_TEXT,  AT(model),     "PATH", "the model; the first word without an option means the same; default: $XM_MODEL" },
    XM_CHIP_DEVICE_ROWS,
    XM_CLI_GROUP("How fast it will be", "xemoe plan model.gguf --device-as b580 --prompt 2048"),
    { 0,   "prompt",    XM_CLI_COUNT, AT(prompt),    "N",    "prompt tokens of the forecast; decoding is forecast after this prompt (512)" },
    { 0,   "bandwidth", XM_CLI_WORD,  AT(bandwidth), "LIST", "read rate of kernels in GB/s, one number for all devices or one for each; default: what 'xemoe bench' has measured, or three quarters of a card's bandwidth" },
    XM_CLI_GROUP("Several devices that share it", "xemoe plan model.gguf --device-as 2xb580 --nodes 4 --link 25,5"),
    { 0,   "split",     XM_CLI_CHOICE, AT(split),    "WHAT", "how several devices share the model. auto (default): weights are split where this saves more time than the exchange of results costs; tensor: every weight that can be split, experts by their width; expert: the same, but each device has some of the experts as a whole; layer: each device has some of the layers, which run one after the other", NULL, XM_CLI_SPLITS },
    XM_CLI_MESSAGES_ROW(AT),
    { 0,   "link",      XM_CLI_WORD,  AT(link),      "G,US", "for the forecast: GB/s between the devices, or with --nodes between the machines, and microseconds per message (5,15); does not change the split" },
    { 0,   "nodes",     XM_CLI_COUNT, AT(nodes),     "N",    "number of machines, each with these devices (1)" },
    { 0,   "local-link", XM_CLI_WORD, AT(local_link), "G,US", "with --nodes: the same for the devices of one machine (5,15)" },
    XM_CLI_GROUP("What the model must hold", "xemoe plan model.gguf -c 32768 --parallel 4"),
    XM_CHIP_CONTEXT_ROW,
    { 0,   "ubatch",    XM_CLI_COUNT, AT(chunk),     "N",    "most prompt tokens in one chunk, which runs through the model at once (512)", "chunk ubatch-size -ub" },
    { 0,   "parallel",  XM_CLI_COUNT, AT(parallel),  "N",    "requests that run at once (1)", "-np" },
    XM_CLI_GROUP("How it runs", "xemoe plan model.gguf --kv u4 --offload 50"),
    XM_CLI_CACHE_ROWS(AT),
    XM_CLI_KV_MEMORY_ROW(AT),
    XM_CLI_PRECISION_ROW(AT),
    XM_CLI_QUANTISATION_ROW(AT),
    { 0,   "offload",   XM_CLI_WORD,  AT(offload),   "N",    "percentage of the experts that stays in host memory (0)" },
    XM_CLI_EXPERT_CACHE_ROW(AT),
    XM_CLI_WEIGHTS_ROW(AT),
    XM_CLI_GROUP("Output", "xemoe plan model.gguf --json"),
    { 0,   "json",      XM_CLI_FLAG,  AT(json),      NULL,   "print the result as one JSON object" },
};
#undef AT
/* clang-format on */

/* ---- options ------------------------------------------------------------------------------- */

static void
find_room(const struct xm_plan_args *a, struct xm_plan *p)
{
    xm_planner_room(&p->info, NULL, &p->room);
    p->room.is_for_mapped = true;
    if (a->chip.memory == 0)
        return;
    p->room.known = true;
    p->room.device = a->chip.memory << 20;
    if (p->room.host_is_device)
        p->room.host = p->room.device;
}

/* The settings of the options; `chunk` is memory for a number's text. */
enum { N_SETTINGS = 11 };
static void
find_settings(const struct xm_plan_args *a, char chunk[XM_CLI_NUMBER],
              struct xm_cli_setting out[N_SETTINGS])
{
    snprintf(chunk, XM_CLI_NUMBER, "%" PRIu64, a->chunk);
    const struct xm_cli_setting settings[N_SETTINGS] = {
        {"--ubatch", "XM_UBATCH", a->chunk ? chunk : NULL},
        {"--offload", "OFFLOAD_RATIO", a->offload},
        {"--expert-cache", "XM_EXPERT_CACHE", a->expert_cache},
        {"--weights", "XM_COPY_WEIGHTS", xm_cli_copy_weights(a->weights)},
        {"--kv", "KV_CACHE_PRECISION", a->kv},
        {"--cache-type-k", "KEY_CACHE_PRECISION", a->key_cache},
        {"--cache-type-v", "VALUE_CACHE_PRECISION", a->value_cache},
        {"--kv-memory", "XM_KV_MEMORY", a->kv_memory},
        {"--precision", "INFERENCE_PRECISION_HINT", a->precision},
        {"--dynamic-quantization", "DYNAMIC_QUANTIZATION_GROUP_SIZE", a->quantisation},
        {"XM_NUMERICS", "XM_NUMERICS", xm_env("XM_NUMERICS")},
    };
    memcpy(out, settings, sizeof(settings));
}

static int
check_options(const struct xm_plan_args *a)
{
    struct xm_cli_setting settings[N_SETTINGS];
    char chunk[XM_CLI_NUMBER];
    struct xm_chip_args chip = a->chip;
    if (xm_plan_is_mesh(a))
        chip.device = chip.device_as = NULL; /* plan_mesh.c checks each device */
    if (xm_cli_check_chip(&chip) != XM_EXIT_OK)
        return XM_EXIT_USAGE;
    if ((a->split || a->link || a->messages) && !xm_plan_is_mesh(a))
        return xm_cli_usage("options --split, --messages and --link need several "
                            "devices, as -d GPU.0,GPU.1 or --device-as 2xbmg");
    if (a->local_link && a->nodes < 2)
        return xm_cli_usage(
            "option --local-link needs --nodes and several devices in each machine");
    if (a->prompt > MOST_PROMPT)
        return xm_cli_usage("option --prompt takes at most %d tokens, found %" PRIu64,
                            MOST_PROMPT, a->prompt);
    if (a->parallel > MOST_REQUESTS)
        return xm_cli_usage("option --parallel takes at most %d requests, found %" PRIu64,
                            MOST_REQUESTS, a->parallel);
    find_settings(a, chunk, settings);
    return xm_cli_check_settings(settings, N_SETTINGS);
}

/* Sets the options; other settings of *c stay. */
enum xm_status
xm_plan_set_config(const struct xm_plan_args *a, struct xm_config *c,
                   struct xm_error *err)
{
    struct xm_cli_setting settings[N_SETTINGS];
    char chunk[XM_CLI_NUMBER];
    find_settings(a, chunk, settings);
    for (size_t i = 0; i < N_SETTINGS; i++) {
        if (settings[i].value)
            XM_TRY(xm_config_set(c, settings[i].key, settings[i].value, err));
    }
    return XM_OK;
}

/* ---- the model ----------------------------------------------------------------------- */

/* Sets options from lines "KEY value". */
static enum xm_status
set_lines(const char *text, struct xm_config *c, struct xm_error *err)
{
    struct xm_strbuf line = {0};
    enum xm_status s = XM_OK;
    for (size_t n; *text && s == XM_OK; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        xm_strbuf_clear(&line);
        xm_strbuf_add_n(&line, text, n);
        char *space = xm_strbuf_ok(&line) ? strchr(line.text, ' ') : NULL;
        if (!xm_strbuf_ok(&line))
            s = xm_no_memory(err, "an option");
        else if (space) {
            *space = '\0';
            s = xm_config_set(c, line.text, space + 1, err);
        }
    }
    xm_strbuf_free(&line);
    return s;
}

/* Opens the model that a file was compiled from, with the options that it was compiled with. */
static enum xm_status
open_compiled(const struct xm_import *from, struct xm_plan_result *r,
              struct xm_package **package, struct xm_error *err)
{
    struct xm_blob_facts facts;
    enum xm_status s = xm_blob_facts(from, &facts, err);
    if (s == XM_OK)
        s = set_lines(facts.config, &r->plan.config, err);
    if (s == XM_OK)
        s = xm_info_model_of(from, &r->compiled_from, err);
    if (s == XM_OK)
        s = xm_package_open(xm_strbuf_text(&r->compiled_from), package, err);
    xm_blob_facts_free(&facts);
    return s;
}

enum xm_status
xm_plan_open_model(const char *path, struct xm_plan_result *r,
                   struct xm_package **package, struct xm_error *err)
{
    struct xm_import from;
    enum xm_status s;
    xm_config_init(&r->plan.config);
    if (xm_import_open(path, &from, NULL) == XM_OK && xm_blob_recognises(&from)) {
        s = open_compiled(&from, r, package, err);
        if (s != XM_OK)
            xm_error_prefix(err, "%.150s", path);
    } else {
        s = xm_cli_open_package(path, package, err);
    }
    xm_import_close(&from);
    return s;
}

void
xm_plan_set_wish(const struct xm_plan_args *a, uint64_t trained, struct xm_plan *p)
{
    p->wish = (struct xm_plan_wish){.context = xm_cli_context(a->chip.context, trained),
                                    .requests = a->parallel,
                                    .prompt = a->prompt};
    if (p->wish.context == 0)
        p->wish.context = xm_planner_usual_context(trained);
    if (p->wish.prompt > p->wish.context)
        p->wish.prompt = p->wish.context;
    find_room(a, p);
}

/* ---- the command --------------------------------------------------------------------- */

static enum xm_status
run(const struct xm_plan_args *a, struct xm_package *package, struct xm_plan_result *r,
    struct xm_error *err)
{
    xm_package_read(package, XM_PACKAGE_FACTS, NULL);
    const uint64_t trained = r->trained_context = package->facts.context;
    struct xm_plan *p = &r->plan;
    struct xm_graph *g = NULL;
    XM_TRY(xm_plan_set_config(a, &p->config, err));
    xm_plan_set_wish(a, trained, p);
    xm_progress_show("planning %s", a->model);
    XM_TRY(xm_package_read_graph(package, NULL, &g, err));
    enum xm_status s = xm_planner_plan(p, g, err);
    xm_graph_destroy(g);
    XM_TRY(s);
    xm_progress_clear();
    struct xm_strbuf cache = {0};
    s = xm_cli_cache_open(NULL, &cache, err);
    if (s == XM_OK)
        xm_plan_find_rates(p, xm_strbuf_text(&cache), &r->rates);
    xm_strbuf_free(&cache);
    XM_TRY(s);
    if (a->json)
        return xm_plan_print_json(a, r, err);
    xm_plan_print_text(a, r);
    return XM_OK;
}

/* Returns the exit code, by which scripts know whether the model can be started. */
static int
verdict(const struct xm_plan *p, enum xm_status s, const struct xm_error *err)
{
    int code = XM_EXIT_OK;
    if (s == XM_OK)
        code = xm_cli_flush();
    else if (s != XM_NO_MEMORY)
        return xm_cli_failed(err);
    if (code != XM_EXIT_OK || (s == XM_OK && !p->excess))
        return code;
    if (s == XM_OK)
        xm_say("the model does not fit on %s", p->info.name);
    else
        xm_cli_print_failure(err, p->is_beyond_counting ? " (--context)" : "");
    return XM_EXIT_DEVICE;
}

int
xm_cli_plan(int argc, char **argv)
{
    static const struct xm_cli_spec spec = {
        .usage = "xemoe plan MODEL [-c N] [options]",
        .about =
            "Shows the memory that a model needs on a device, without allocating it: "
            "weights,\nKV cache, activations, scratch memory; and how fast the model "
            "will be. Says\nwhether it fits; if it does not, says what to change, and "
            "the exit code is 4.\nWeights that are read in the mapped file must fit into "
            "memory as well, because\notherwise every token waits for the disk. For a "
            "file of 'xemoe compile': the plan\nof its model, with its options.\n",
        .own = options,
        .n_own = XM_ARRAY_LEN(options),
        XM_CLI_MODEL(offsetof(struct xm_plan_args, model)),
    };
    struct xm_plan_args a = {.parallel = 1, .prompt = USUAL_PROMPT};
    struct xm_package *package = NULL;
    struct xm_error err = {0};
    bool done;
    int code = xm_cli_begin(&spec, argc, argv, &a, &done);
    if (!done)
        code = check_options(&a);
    if (done || code != XM_EXIT_OK)
        return code;
    if (xm_plan_is_mesh(&a))
        return xm_plan_mesh(&a);
    struct xm_plan_result *r = xm_calloc(1, sizeof(*r));
    enum xm_status s = r ? XM_OK : xm_no_memory(&err, "a plan");
    if (r && (code = xm_plan_read_bandwidths(a.bandwidth, &r->rates, 1)) != XM_EXIT_OK) {
        xm_free(r);
        return code;
    }
    if (s == XM_OK &&
        xm_cli_find_chip(a.chip.device, a.chip.device_as, &r->plan.info, &err) != XM_OK) {
        xm_free(r);
        return xm_cli_no_device("-d", a.chip.device, &err);
    }
    if (s == XM_OK)
        s = xm_plan_open_model(a.model, r, &package, &err);
    if (s == XM_OK)
        s = run(&a, package, r, &err);
    xm_progress_clear();
    if (!r)
        return xm_cli_failed(&err);
    code = verdict(&r->plan, s, &err);
    xm_package_close(package);
    xm_planner_free_plan(&r->plan);
    xm_strbuf_free(&r->compiled_from);
    xm_free(r);
    return code;
}
