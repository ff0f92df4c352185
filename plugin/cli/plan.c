/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe plan: what a model will take, whether that fits, and what to change when it does not.
 *
 * Nothing is allocated on a device: the model is compiled on an engine that only counts
 * (plugin/planner.h). Every piece of advice has been counted as well before it is given.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plugin/cli/cli.h"
#include "plugin/cli/progress.h"
#include "plugin/planner.h"

enum {
    LARGEST_CONTEXT = 1 << 20,
    MOST_POSITIONS = 1 << 24,
    MOST_REQUESTS = 1 << 10,
    MOST_MIB = 1 << 30,
    LEAST_CHUNK = 32,
    MAX_ADVICE = 5
};

struct args {
    const char *model, *device, *device_as, *kv, *precision, *offload, *expert_cache;
    uint64_t context, parallel;
    uint64_t chunk, memory; /* 0: not given */
    bool json;
};

/* clang-format off */
#define AT(member) offsetof(struct args, member)
static const struct xm_cli_option options[] = {
    { 'd', "device",    XM_CLI_TEXT,  AT(device),    "NAME", "GPU (default), GPU.1; 'xemoe devices' lists them" },
    { 0,   "device-as", XM_CLI_TEXT,  AT(device_as), "CHIP", "an Intel GPU that need not be here: mtl_u, dg2, bmg …" },
    { 0,   "memory",    XM_CLI_COUNT, AT(memory),    "MIB",  "memory there is, instead of the device's" },
    { 'c', "context",   XM_CLI_COUNT, AT(context),   "N",    "positions that the state is to hold (4096)" },
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

/* Something to change, which has been counted to be enough. */
struct advice {
    const char *option;
    char value[24];
};

struct plan {
    struct xm_device_info info;
    struct xm_config config;  /* as the user wants it */
    struct xm_config decided; /* and as the rules made it */
    struct xm_plan_wish wish;
    struct xm_graph *graph; /* as read */
    struct xm_memory_room room;
    struct xm_memory_need need;
    uint64_t excess, largest_context;
    struct advice advice[MAX_ADVICE];
    size_t n_advice;
};

/* ---- the device ---------------------------------------------------------------------- */

/* A chip that is not here: an Intel GPU with its usual driver, and that row's facts. */
static enum xm_status
imagine(const char *row, struct xm_device_info *info, struct xm_error *err)
{
    *info = (struct xm_device_info){
        .kind = XM_DEVICE_GPU,
        .caps = XM_CAP_FP16 | XM_CAP_SUBGROUPS | XM_CAP_REQD_SG_SIZE | XM_CAP_SG_SHORT |
                XM_CAP_SG_CHAR | XM_CAP_USM_HOST | XM_CAP_USM_DEVICE | XM_CAP_USM_SHARED,
        .compute_units = 64,
        .max_work_group = 512,
        .local_bytes = 64 << 10,
        .max_alloc_bytes = (uint64_t)4 << 30,
        .base_align = 128,
        .sub_group_sizes = {8, 16, 32},
    };
    snprintf(info->name, sizeof(info->name), "%s", row);
    XM_TRY(xm_device_pretend(info, row, err));
    info->pretended = 0;
    if (info->integrated)
        info->global_bytes = UINT64_MAX; /* the host's, which is known */
    return XM_OK;
}

static enum xm_status
find_device(const struct args *a, struct xm_device_info *info, struct xm_error *err)
{
    const struct xm_device_info *infos = NULL;
    struct xm_core *core = NULL;
    struct xm_plugin *plugin = NULL;
    uint32_t index = 0;
    size_t n = 0;
    if (a->device_as)
        return imagine(a->device_as, info, err);
    XM_TRY(xm_core_create(&core, err));
    enum xm_status s = xm_core_find(core, a->device, &plugin, &index, err);
    if (s == XM_OK)
        s = xm_engine_list(&infos, &n, err);
    if (s == XM_OK && (index >= n || strcmp(plugin->ops->name, "GPU") != 0))
        s = xm_fail(err, XM_NOT_FOUND, "a plan is for an OpenCL device: %s is none",
                    a->device ? a->device : "GPU");
    if (s == XM_OK)
        *info = infos[index];
    xm_core_destroy(core);
    return s;
}

static void
find_room(const struct args *a, struct plan *p)
{
    xm_planner_room(&p->info, NULL, &p->room);
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
find_settings(const struct args *a, char chunk[XM_CLI_NUMBER],
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
check_options(const struct args *a)
{
    struct xm_cli_setting settings[N_SETTINGS];
    struct xm_device_info info;
    struct xm_error err = {0};
    char chunk[XM_CLI_NUMBER];
    if (a->context > MOST_POSITIONS)
        return xm_cli_usage("option --context takes at most %d positions",
                            MOST_POSITIONS);
    if (a->parallel > MOST_REQUESTS)
        return xm_cli_usage("option --parallel takes at most %d requests", MOST_REQUESTS);
    if (a->memory > MOST_MIB)
        return xm_cli_usage("option --memory takes at most %d MiB", MOST_MIB);
    if (a->device_as && imagine(a->device_as, &info, &err) != XM_OK)
        return xm_cli_usage("option --device-as: %s", err.text);
    find_settings(a, chunk, settings);
    return xm_cli_check_settings(settings, N_SETTINGS);
}

static enum xm_status
set_config(const struct args *a, struct xm_config *c, struct xm_error *err)
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
compile(const struct plan *p, const struct xm_config *config, struct xm_program **out,
        struct xm_error *err)
{
    struct xm_graph *g = NULL;
    XM_TRY(xm_graph_clone(p->graph, NULL, &g, err));
    return xm_planner_compile(&p->info, config, g, out, err);
}

/* Whether the wish fits with another config. */
static enum xm_status
try_config(const struct plan *p, const struct xm_config *config, bool *fits,
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
advise(struct plan *p, const char *option, const char *value)
{
    struct advice *a = &p->advice[p->n_advice++];
    a->option = option;
    snprintf(a->value, sizeof(a->value), "%s", value);
}

static void
advise_number(struct plan *p, const char *option, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, value);
    advise(p, option, text);
}

static enum xm_status
try_kv(struct plan *p, struct xm_error *err)
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
try_chunks(struct plan *p, struct xm_error *err)
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
try_offload(struct plan *p, struct xm_error *err)
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
find_advice(struct plan *p, struct xm_error *err)
{
    if (p->largest_context)
        advise_number(p, "--context", p->largest_context);
    XM_TRY(try_kv(p, err));
    XM_TRY(try_chunks(p, err));
    return try_offload(p, err);
}

/* The wish is more than could even be counted; `cause` has the reason. */
static enum xm_status
say_what_would_fit(struct plan *p, struct xm_program *program, struct xm_error *err)
{
    const struct xm_error cause = *err;
    *err = (struct xm_error){0};
    if (p->room.known)
        XM_TRY(xm_planner_largest_context(program, &p->room, p->wish.requests,
                                          LARGEST_CONTEXT, &p->largest_context, err));
    return xm_fail(err, XM_UNSUPPORTED,
                   "a context of %" PRIu64 " does not fit: %.200s; one of %" PRIu64
                   " would (--context)",
                   p->wish.context, cause.text, p->largest_context);
}

/* A cache of an open size gets what was left without it, as when the model is loaded. */
static enum xm_status
add_expert_cache(struct plan *p, struct xm_program **program, struct xm_error *err)
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
make_plan(struct plan *p, struct xm_error *err)
{
    struct xm_program *program = NULL;
    XM_TRY(compile(p, &p->config, &program, err));
    p->decided = program->config;
    enum xm_status s = xm_planner_count(program, &p->wish, &p->need, err);
    if (s == XM_OK)
        s = add_expert_cache(p, &program, err);
    p->excess = xm_planner_excess(&p->need, &p->room);
    if (s == XM_NO_MEMORY)
        s = say_what_would_fit(p, program, err);
    else if (s == XM_OK && p->room.known)
        s = xm_planner_largest_context(program, &p->room, p->wish.requests,
                                       LARGEST_CONTEXT, &p->largest_context, err);
    xm_program_unref(program);
    if (s == XM_OK && p->excess)
        s = find_advice(p, err);
    return s;
}

/* ---- printing ------------------------------------------------------------------------ */

static double
mib(uint64_t bytes)
{
    return (double)bytes / 1048576.0;
}

/* What lies where nobody else counts it: block tables, the cache growing. */
static uint64_t
rest(const struct xm_memory_need *n)
{
    return n->kinds.total_peak - n->weights - n->expert_cache - n->kv - n->activations -
           n->scratch - n->io;
}

static void
print_need(const struct plan *p)
{
    const struct xm_memory_need *n = &p->need;
    const uint64_t device = xm_planner_of_device(n, &p->room);
    const struct {
        const char *what;
        uint64_t bytes;
        const char *note;
    } rows[] = {
        {"weights", n->weights - n->host_weights, "copied to the device"},
        {"weights", n->host_weights, "in host memory, read from there"},
        {"weights", n->mapped_weights, "where the file is mapped; not counted below"},
        {"expert cache", n->expert_cache, "for those that were used last"},
        {"KV cache", n->kv, ""},
        {"activations", n->activations, ""},
        {"scratch", n->scratch, "one buffer a request"},
        {"inputs, results", n->io, ""},
        {"tables, growth", rest(n), ""},
    };
    for (size_t i = 0; i < XM_ARRAY_LEN(rows); i++) {
        if (rows[i].bytes)
            printf("%-16s %12.1f MiB%s%s\n", rows[i].what, mib(rows[i].bytes),
                   rows[i].note[0] ? "  " : "", rows[i].note);
    }
    printf("%-16s %12.1f MiB  %slargest buffer %.1f MiB, the device takes %.1f\n",
           "at most", mib(device), device < n->kinds.total_peak ? "of the device; " : "",
           mib(n->kinds.largest), mib(p->info.max_alloc_bytes));
}

static void
print_verdict(const struct plan *p)
{
    if (!p->room.known) {
        printf("%-16s the device does not say; --memory tells\n", "there is");
        return;
    }
    printf("%-16s %12.1f MiB%s\n", "there is", mib(p->room.device),
           p->room.host_is_device ? "  shared with the host" : "");
    if (!p->excess) {
        printf("it fits");
        if (p->largest_context > p->wish.context)
            printf("; so does a context of %" PRIu64 "%s", p->largest_context,
                   p->largest_context == LARGEST_CONTEXT ? " and more" : "");
        printf("\n");
        return;
    }
    printf("it does not fit: %.1f MiB too much\n", mib(p->excess));
    for (size_t i = 0; i < p->n_advice; i++)
        printf("  %s %s %s\n", i ? "or" : "it would with", p->advice[i].option,
               p->advice[i].value);
    if (p->n_advice == 0)
        printf("  no context, type of the cache, chunk or share of experts alone is "
               "enough\n");
    else if (!p->room.host_is_device && p->need.experts &&
             !xm_config_user_set(&p->config, XM_OPTION_offload_ratio))
        printf("without --offload, generate leaves as many experts on the host as it "
               "must\n");
}

static void
print_text(const struct args *a, const struct plan *p)
{
    printf("%s on %s: context %" PRIu64 ", chunk %u, KV cache %s, %" PRIu64
           " request%s\n\n",
           a->model, p->info.name, p->wish.context, p->decided.ubatch,
           xm_element_text(p->decided.kv_cache_precision), p->wish.requests,
           p->wish.requests == 1 ? "" : "s");
    print_need(p);
    print_verdict(p);
}

static void
add_need(struct xm_json_out *j, const struct xm_memory_need *n)
{
    yyjson_mut_val *o = xm_json_add_object(j, NULL, "memory");
    xm_json_add_whole(j, o, "weights", n->weights);
    xm_json_add_whole(j, o, "host_weights", n->host_weights);
    xm_json_add_whole(j, o, "mapped_weights", n->mapped_weights);
    xm_json_add_whole(j, o, "experts", n->experts);
    xm_json_add_whole(j, o, "expert_cache", n->expert_cache);
    xm_json_add_whole(j, o, "kv_cache", n->kv);
    xm_json_add_whole(j, o, "activations", n->activations);
    xm_json_add_whole(j, o, "scratch", n->scratch);
    xm_json_add_whole(j, o, "inputs_and_results", n->io);
    xm_json_add_whole(j, o, "allocated", n->kinds.total_now);
    xm_json_add_whole(j, o, "allocated_peak", n->kinds.total_peak);
    xm_json_add_whole(j, o, "largest_buffer", n->kinds.largest);
    xm_cli_add_memory_kinds(j, xm_json_add_object(j, o, "kinds"), &n->kinds);
}

static enum xm_status
print_json(const struct args *a, const struct plan *p, struct xm_error *err)
{
    struct xm_json_out j;
    const char *kv = xm_element_text(p->decided.kv_cache_precision);
    xm_json_begin(&j);
    xm_json_add_text(&j, NULL, "model", a->model, strlen(a->model));
    xm_json_add_text(&j, NULL, "device", p->info.name, strlen(p->info.name));
    xm_json_add_whole(&j, NULL, "context", p->wish.context);
    xm_json_add_whole(&j, NULL, "chunk", p->decided.ubatch);
    xm_json_add_text(&j, NULL, "kv_cache", kv, strlen(kv));
    xm_json_add_whole(&j, NULL, "requests", p->wish.requests);
    xm_json_add_whole(&j, NULL, "offload", p->decided.offload_ratio);
    add_need(&j, &p->need);
    if (p->room.known) {
        xm_json_add_whole(&j, NULL, "room", p->room.device);
        xm_json_add_bool(&j, NULL, "fits", p->excess == 0);
        xm_json_add_whole(&j, NULL, "missing", p->excess);
        xm_json_add_whole(&j, NULL, "largest_context", p->largest_context);
    }
    yyjson_mut_val *list = xm_json_add_array(&j, NULL, "advice");
    for (size_t i = 0; i < p->n_advice; i++) {
        yyjson_mut_val *o = xm_json_add_object(&j, list, NULL);
        const char *option = p->advice[i].option, *value = p->advice[i].value;
        xm_json_add_text(&j, o, "option", option, strlen(option));
        xm_json_add_text(&j, o, "value", value, strlen(value));
    }
    enum xm_status s = xm_json_print(&j, err);
    xm_json_end(&j);
    return s;
}

/* ---- the command --------------------------------------------------------------------- */

static enum xm_status
run(const struct args *a, struct plan *p, struct xm_error *err)
{
    p->wish = (struct xm_plan_wish){a->context, a->parallel};
    XM_TRY(set_config(a, &p->config, err));
    find_room(a, p);
    xm_progress_show("counting %s", a->model);
    XM_TRY(xm_core_read_model(NULL, a->model, NULL, &p->graph, err));
    XM_TRY(make_plan(p, err));
    xm_progress_clear();
    if (a->json)
        return print_json(a, p, err);
    print_text(a, p);
    return XM_OK;
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
            "not.\n",
        .own = options,
        .n_own = XM_ARRAY_LEN(options),
        .operand = "PATH",
        .operand_offset = offsetof(struct args, model),
    };
    struct args a = {.context = 4096, .parallel = 1};
    struct xm_error err = {0};
    bool done;
    int code = xm_cli_begin(&spec, argc, argv, &a, &done);
    if (!done)
        code = check_options(&a);
    if (done || code != XM_EXIT_OK)
        return code;
    struct plan *p = xm_calloc(1, sizeof(*p));
    enum xm_status s =
        p ? XM_OK : xm_fail(&err, XM_NO_MEMORY, "out of memory for a plan");
    if (s == XM_OK && find_device(&a, &p->info, &err) != XM_OK) {
        xm_free(p);
        xm_cli_failed(&err);
        return XM_EXIT_DEVICE;
    }
    if (s == XM_OK)
        s = run(&a, p, &err);
    xm_progress_clear();
    if (p)
        xm_graph_destroy(p->graph);
    xm_free(p);
    return s == XM_OK ? xm_cli_flush() : xm_cli_failed(&err);
}
