/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe plan: what a model will take, whether that fits, and what to change when it does not.
 *
 * Nothing is allocated on a device: the model is compiled on an engine that only counts
 * (plugin/planner.h). Every piece of advice has been counted as well before it is given.
 */
#include "plugin/cli/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plugin/cli/chip.h"
#include "plugin/cli/progress.h"
#include "plugin/text/hyper_parameters.h"

enum {
    MOST_REQUESTS = 1 << 10,
    MOST_MIB = 1 << 30,
    LEAST_CHUNK = 32,
    USUAL_CONTEXT = 4096
};

/* clang-format off */
#define AT(member) offsetof(struct xm_plan_args, member)
static const struct xm_cli_option options[] = {
    { 'd', "device",    XM_CLI_TEXT,  AT(device),    "NAME", "GPU (default), GPU.1; 'xemoe devices' lists them" },
    { 0,   "device-as", XM_CLI_TEXT,  AT(device_as), "CHIP", "an Intel GPU that need not be here: mtl_u, dg2, bmg …" },
    { 0,   "memory",    XM_CLI_COUNT, AT(memory),    "MIB",  "memory there is, instead of the device's" },
    { 'c', "context",   XM_CLI_COUNT, AT(context),   "N",    "positions that the state is to hold (4096, or all that the model was trained for)" },
    { 0,   "chunk",     XM_CLI_COUNT, AT(chunk),     "N",    "prompt tokens at once (512)" },
    { 0,   "ubatch",    XM_CLI_COUNT, AT(chunk),     "N",    "the same, as the other commands call it" },
    { 0,   "parallel",  XM_CLI_COUNT, AT(parallel),  "N",    "requests at once (1)" },
    { 0,   "kv",        XM_CLI_TEXT,  AT(kv),        "TYPE", "of the KV cache: i8, f16 or f32; default: what suits the device" },
    { 0,   "precision", XM_CLI_TEXT,  AT(precision), "TYPE", "of activations: f16 or f32; default: what suits the device" },
    { 0,   "offload",   XM_CLI_TEXT,  AT(offload),   "N",    "percent of the experts that stay in host memory (0)" },
    { 0,   "expert-cache", XM_CLI_TEXT, AT(expert_cache), "MIB", "of the device, for recently used ones of them; default: what is left" },
    { 0,   "json",      XM_CLI_FLAG,  AT(json),      NULL,   "the result as one JSON object" },
};
#undef AT
/* clang-format on */

/* ---- what is asked for --------------------------------------------------------------- */

static void
find_room(const struct xm_plan_args *a, struct xm_plan_result *p)
{
    xm_planner_room(&p->info, NULL, &p->room);
    p->room.is_for_mapped = true;
    if (a->memory == 0)
        return;
    p->room.known = true;
    p->room.device = a->memory << 20;
    if (p->room.host_is_device)
        p->room.host = p->room.device;
}

static enum xm_status
set_number(struct xm_config *c, const char *key, uint64_t value, struct xm_error *err)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, value);
    return xm_config_set(c, key, text, err);
}

/* What the options set; the number's text goes to `chunk`. */
enum { N_SETTINGS = 5 };
static void
find_settings(const struct xm_plan_args *a, char chunk[XM_CLI_NUMBER],
              struct xm_cli_setting out[N_SETTINGS])
{
    snprintf(chunk, XM_CLI_NUMBER, "%" PRIu64, a->chunk);
    const struct xm_cli_setting settings[N_SETTINGS] = {
        {"--chunk", "XM_UBATCH", a->chunk ? chunk : NULL},
        {"--offload", "OFFLOAD_RATIO", a->offload},
        {"--expert-cache", "XM_EXPERT_CACHE", a->expert_cache},
        {"--kv", "KV_CACHE_PRECISION", a->kv},
        {"--precision", "INFERENCE_PRECISION_HINT", a->precision},
    };
    memcpy(out, settings, sizeof(settings));
}

static int
check_options(const struct xm_plan_args *a)
{
    struct xm_cli_setting settings[N_SETTINGS];
    struct xm_error err = {0};
    char chunk[XM_CLI_NUMBER];
    if (xm_cli_check_context(a->context) != XM_EXIT_OK)
        return XM_EXIT_USAGE;
    if (a->parallel > MOST_REQUESTS)
        return xm_cli_usage("option --parallel takes at most %d requests", MOST_REQUESTS);
    if (a->memory > MOST_MIB)
        return xm_cli_usage("option --memory takes at most %d MiB", MOST_MIB);
    if (a->device_as && xm_cli_check_chip(a->device_as, &err) != XM_OK)
        return xm_cli_usage("option --device-as: %s", err.text);
    find_settings(a, chunk, settings);
    return xm_cli_check_settings(settings, N_SETTINGS);
}

static enum xm_status
set_config(const struct xm_plan_args *a, struct xm_config *c, struct xm_error *err)
{
    struct xm_cli_setting settings[N_SETTINGS];
    char chunk[XM_CLI_NUMBER];
    find_settings(a, chunk, settings);
    xm_config_init(c);
    for (size_t i = 0; i < N_SETTINGS; i++) {
        if (settings[i].value)
            XM_TRY(xm_config_set(c, settings[i].key, settings[i].value, err));
    }
    return XM_OK;
}

/* ---- counting ------------------------------------------------------------------------ */

static enum xm_status
compile(const struct xm_plan_result *p, const struct xm_config *config,
        struct xm_program **out, struct xm_error *err)
{
    struct xm_graph *g = NULL;
    XM_TRY(xm_graph_clone(p->graph, NULL, &g, err));
    return xm_planner_compile(&p->info, config, g, out, err);
}

/* Whether the wish fits with another config. */
static enum xm_status
try_config(const struct xm_plan_result *p, const struct xm_config *config, bool *fits,
           struct xm_error *err)
{
    struct xm_program *program = NULL;
    struct xm_memory_need need;
    XM_TRY(compile(p, config, &program, err));
    enum xm_status s = xm_planner_count(program, &p->wish, &need, err);
    *fits = s == XM_OK && xm_planner_excess(&need, &p->room) == 0;
    xm_program_unref(program);
    return s;
}

static void
advise(struct xm_plan_result *p, const char *option, const char *value)
{
    struct xm_plan_advice *a = &p->advice[p->n_advice++];
    a->option = option;
    snprintf(a->value, sizeof(a->value), "%s", value);
}

static void
advise_number(struct xm_plan_result *p, const char *option, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, value);
    advise(p, option, text);
}

static enum xm_status
try_kv(struct xm_plan_result *p, struct xm_error *err)
{
    struct xm_config c = p->config;
    bool fits = false;
    if (p->decided.kv_cache_precision == XM_I8)
        return XM_OK;
    XM_TRY(xm_config_set(&c, "KV_CACHE_PRECISION", "i8", err));
    XM_TRY(try_config(p, &c, &fits, err));
    if (fits)
        advise(p, "--kv", "i8");
    return XM_OK;
}

static enum xm_status
try_chunks(struct xm_plan_result *p, struct xm_error *err)
{
    struct xm_config c = p->config;
    bool fits = false;
    for (uint64_t n = p->decided.ubatch / 2; n >= LEAST_CHUNK && !fits; n /= 2) {
        XM_TRY(set_number(&c, "XM_UBATCH", n, err));
        XM_TRY(try_config(p, &c, &fits, err));
        if (fits)
            advise_number(p, "--ubatch", n);
    }
    return XM_OK;
}

/* Only where the device has memory of its own. */
static enum xm_status
try_offload(struct xm_plan_result *p, struct xm_error *err)
{
    enum { STEP = 5 };
    struct xm_config c = p->config;
    bool fits = false;
    if (p->room.host_is_device || p->need.experts == 0)
        return XM_OK;
    uint64_t more = (uint64_t)(100.0 * (double)p->excess / (double)p->need.experts);
    uint64_t ratio = xm_align_up(p->decided.offload_ratio + more + 1, STEP);
    for (; ratio <= 100 && !fits; ratio += STEP) {
        XM_TRY(set_number(&c, "OFFLOAD_RATIO", ratio, err));
        XM_TRY(try_config(p, &c, &fits, err));
        if (fits)
            advise_number(p, "--offload", ratio);
    }
    return XM_OK;
}

static enum xm_status
find_advice(struct xm_plan_result *p, struct xm_error *err)
{
    if (p->largest_context)
        advise_number(p, "--context", p->largest_context);
    XM_TRY(try_kv(p, err));
    XM_TRY(try_chunks(p, err));
    return try_offload(p, err);
}

/* The wish is more than could even be counted; `cause` has the reason. */
static enum xm_status
say_what_would_fit(struct xm_plan_result *p, struct xm_program *program,
                   struct xm_error *err)
{
    const struct xm_error cause = *err;
    *err = (struct xm_error){0};
    if (p->room.known)
        XM_TRY(xm_planner_largest_context(program, &p->room, p->wish.requests,
                                          XM_PLAN_LARGEST_CONTEXT, &p->largest_context,
                                          err));
    return xm_fail(err, XM_NO_MEMORY,
                   "a context of %" PRIu64 " does not fit: %.200s; one of %" PRIu64
                   " would (--context)",
                   p->wish.context, cause.text, p->largest_context);
}

/* A cache of an open size gets what was left without it, as when the model is loaded. */
static enum xm_status
add_expert_cache(struct xm_plan_result *p, struct xm_program **program,
                 struct xm_error *err)
{
    uint32_t mib = xm_planner_expert_cache(&p->need, &p->room);
    if (xm_config_user_set(&p->config, XM_OPTION_expert_cache) || mib == 0)
        return XM_OK;
    XM_TRY(set_number(&p->config, "XM_EXPERT_CACHE", mib, err));
    xm_program_unref(*program);
    *program = NULL;
    XM_TRY(compile(p, &p->config, program, err));
    return xm_planner_count(*program, &p->wish, &p->need, err);
}

static enum xm_status
make_plan(struct xm_plan_result *p, struct xm_error *err)
{
    struct xm_program *program = NULL;
    XM_TRY(compile(p, &p->config, &program, err));
    p->decided = program->config;
    enum xm_status s = xm_planner_count(program, &p->wish, &p->need, err);
    if (s == XM_OK)
        s = add_expert_cache(p, &program, err);
    p->excess = xm_planner_excess(&p->need, &p->room);
    if (s == XM_NO_MEMORY && program)
        s = say_what_would_fit(p, program, err);
    else if (s == XM_OK && p->room.known)
        s = xm_planner_largest_context(program, &p->room, p->wish.requests,
                                       XM_PLAN_LARGEST_CONTEXT, &p->largest_context, err);
    xm_program_unref(program);
    if (s == XM_OK && p->excess)
        s = find_advice(p, err);
    return s;
}

/* ---- the command --------------------------------------------------------------------- */

/* Nobody asks for more than the model knows what to do with. */
static uint64_t
usual_context(uint64_t trained)
{
    return trained && trained < USUAL_CONTEXT ? trained : USUAL_CONTEXT;
}

static enum xm_status
run(const struct xm_plan_args *a, struct xm_plan_result *p, struct xm_error *err)
{
    p->trained_context = xm_cli_trained_context(a->model);
    p->wish = (struct xm_plan_wish){a->context, a->parallel};
    if (a->context == 0)
        p->wish.context = usual_context(p->trained_context);
    XM_TRY(set_config(a, &p->config, err));
    find_room(a, p);
    xm_progress_show("counting %s", a->model);
    XM_TRY(xm_core_read_model(NULL, a->model, NULL, &p->graph, err));
    XM_TRY(make_plan(p, err));
    xm_progress_clear();
    if (a->json)
        return xm_plan_print_json(a, p, err);
    xm_plan_print_text(a, p);
    return XM_OK;
}

/* What a script that starts the model next has to know. */
static int
verdict(const struct xm_plan_result *p, enum xm_status s, const struct xm_error *err)
{
    int code = XM_EXIT_OK;
    if (s == XM_OK)
        code = xm_cli_flush();
    else if (s != XM_NO_MEMORY)
        return xm_cli_failed(err);
    if (code != XM_EXIT_OK || (s == XM_OK && !p->excess))
        return code;
    if (s == XM_OK)
        fprintf(stderr, "xemoe: it does not fit on %s\n", p->info.name);
    else
        fprintf(stderr, "xemoe: %s\n", err->text);
    return XM_EXIT_DEVICE;
}

int
xm_cli_plan(int argc, char **argv)
{
    static const struct xm_cli_spec spec = {
        .usage = "xemoe plan PATH [-c N] [options]",
        .about =
            "What a model takes on a device, before anything is allocated: weights, KV "
            "cache,\n"
            "activations, scratch. Says whether it fits, and what to change when it "
            "does\n"
            "not: then the exit code is 4. Weights that are used where the file is "
            "mapped\n"
            "have to find room in memory as well: else every token waits for the "
            "disk.\n",
        .own = options,
        .n_own = XM_ARRAY_LEN(options),
        .operand = "PATH",
        .operand_offset = offsetof(struct xm_plan_args, model),
    };
    struct xm_plan_args a = {.parallel = 1};
    struct xm_error err = {0};
    bool done;
    int code = xm_cli_begin(&spec, argc, argv, &a, &done);
    if (!done)
        code = check_options(&a);
    if (done || code != XM_EXIT_OK)
        return code;
    struct xm_plan_result *p = xm_calloc(1, sizeof(*p));
    enum xm_status s =
        p ? XM_OK : xm_fail(&err, XM_NO_MEMORY, "out of memory for a plan");
    if (s == XM_OK && xm_cli_find_chip(a.device, a.device_as, &p->info, &err) != XM_OK) {
        xm_free(p);
        xm_cli_failed(&err);
        return XM_EXIT_DEVICE;
    }
    if (s == XM_OK)
        s = run(&a, p, &err);
    xm_progress_clear();
    if (!p)
        return xm_cli_failed(&err);
    code = verdict(p, s, &err);
    xm_graph_destroy(p->graph);
    xm_free(p);
    return code;
}
