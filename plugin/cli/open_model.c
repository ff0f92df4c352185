/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens a model on a device: from the common options to a model that can run.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugin/cli/cli.h"
#include "plugin/cli/info.h"
#include "plugin/cli/kernels.h"
#include "plugin/cli/list.h"
#include "plugin/cli/prompt_file.h"
#include "plugin/cli/tuner_process.h"
#include "plugin/mesh/mesh_plan.h"
#include "plugin/pipeline/embedder.h"
#include "plugin/pipeline/prompt.h"
#include "plugin/pipeline/token_runner.h"
#include "plugin/program_util/lines.h"
#include "plugin/program_util/progress.h"
#include "runtime/collective_mpi.h"
#include "runtime/dry_run.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"
#include "transformations/passes/gather_hidden_states.h"

/* clang-format off */
#define AT(member) offsetof(struct xm_cli_target, member)
const struct xm_cli_option xm_cli_target_options[XM_CLI_N_TARGET_OPTIONS] = {
    XM_CLI_TARGET_ROWS
};
#undef AT
/* clang-format on */

/* Whether a path that does not exist may be a name on Hugging Face: "Qwen/Qwen3-30B-A3B", also with
 * llama.cpp's ":Q4_K_M". */
static bool
is_hub_name(const char *path)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:";
    const size_t owner = strspn(path, letters);
    const char *name = path + owner + (path[owner] == '/');
    const char *dot = strrchr(name, '.');
    const bool is_file = dot && strlen(dot) > 3 && isalpha((unsigned char)dot[1]);
    return owner > 0 && path[0] != '.' && path[owner] == '/' && name[0] && !is_file &&
           name[strspn(name, letters)] == '\0' && access(path, F_OK) != 0;
}

enum xm_status
xm_cli_open_package(const char *path, struct xm_package **out, struct xm_error *err)
{
    struct xm_error why = {0};
    *out = NULL;
    if (strstr(path, "://") && access(path, F_OK) != 0)
        return xm_fail(err, XM_NOT_FOUND,
                       "'%.250s' is a URL: download the model, and give the path of its "
                       "file",
                       path);
    if (is_hub_name(path))
        return xm_fail(
            err, XM_NOT_FOUND,
            "'%.250s' does not exist; if it is a name on Hugging Face, download a GGUF "
            "file or an OpenVINO IR folder of the model, and give its path",
            path);
    const enum xm_status s = xm_package_open(path, out, &why);
    if (s == XM_NOT_FOUND && xm_list_has_any(path))
        return xm_fail(err, s,
                       "the folder '%.150s' is not a model, but there are models below "
                       "it: 'xemoe list %.150s' lists them",
                       path, path);
    return s == XM_OK ? s : xm_fail(err, s, "%s", why.text);
}

uint64_t
xm_cli_context(uint64_t given, uint64_t trained)
{
    return given == XM_CLI_TRAINED_CONTEXT ? trained : given;
}

enum xm_status
xm_cli_check_context(uint64_t positions, struct xm_error *err)
{
    return positions <= XM_CLI_MOST_TOKENS || positions == XM_CLI_TRAINED_CONTEXT
               ? XM_OK
               : xm_fail(err, XM_INVALID,
                         "option --context takes at most %d positions, found %" PRIu64,
                         XM_CLI_MOST_TOKENS, positions);
}

bool
xm_cli_beyond_training(uint64_t positions, uint64_t trained, char warning[XM_CLI_WARNING])
{
    snprintf(warning, XM_CLI_WARNING,
             "the context of %" PRIu64 " positions exceeds the %" PRIu64
             " for which the model was trained: text after that may make no sense",
             positions, trained);
    return trained && positions > trained;
}

enum { MOST_TEMPLATE_MIB = 4 };

/* ---- opening ----------------------------------------------------------------------- */

static enum xm_status
read_own_chat_template(struct xm_package *p, struct xm_error *err)
{
    struct xm_error why = {0};
    const enum xm_status s = xm_package_read(p, XM_PACKAGE_CHAT_TEMPLATE, &why);
    return s == XM_OK
               ? XM_OK
               : xm_fail(err, s, "%s%s", why.text,
                         s == XM_NOT_FOUND ? "; give one with --chat-template FILE" : "");
}

/* Whether the text of messages appears in the rendered prompt: if not, the file is probably not a
 * chat template. A template that cannot be rendered is accepted here; the error is reported when it
 * is used. */
static bool
takes_messages(const struct xm_chat_template *t)
{
    static const char message[] = "[{\"role\": \"user\", \"content\": \"text\"}]";
    struct xm_strbuf text = {0}, marks = {0};
    const bool is_rendered = xm_chat_template_render_marked(t, message, true, NULL, &text,
                                                            &marks, NULL) == XM_OK;
    const bool is_marked = marks.n && memchr(xm_strbuf_text(&marks), 1, marks.n);
    xm_strbuf_free(&text);
    xm_strbuf_free(&marks);
    return !is_rendered || is_marked;
}

/* Reads the model's chat template, or that of a file. */
static enum xm_status
read_chat_template(struct xm_package *p, const struct xm_cli_target *t,
                   struct xm_error *err)
{
    struct xm_strbuf text = {0};
    if (!t->chat_template)
        return t->needs_chat_template ? read_own_chat_template(p, err) : XM_OK;
    enum xm_status s =
        xm_file_read(t->chat_template, "a chat template", MOST_TEMPLATE_MIB, &text, err);
    if (s != XM_OK) {
        xm_error_prefix(err, "option --chat-template needs a file");
    } else {
        s = xm_package_use_chat_template(p, xm_strbuf_text(&text), text.n, err);
        if (s != XM_OK)
            xm_error_prefix(err, "--chat-template '%s'", t->chat_template);
        else if (!takes_messages(p->chat_template))
            xm_log(XM_LOG_WARNING,
                   "--chat-template '%s' does not render the messages: the model will "
                   "not see them",
                   t->chat_template);
    }
    xm_strbuf_free(&text);
    return s;
}

/* Reads tokenizer, generation and facts. Without a tokenizer the model runs on token ids; a damaged
 * one is an error. Damaged facts are reported by the commands that need more of them than the
 * context. */
static enum xm_status
read_text_side(struct xm_package *p, const struct xm_cli_target *t, struct xm_error *err)
{
    struct xm_error why = {0};
    enum xm_status s = xm_package_read(p, XM_PACKAGE_TOKENIZER, &why);
    const bool is_missing = s == XM_NOT_FOUND;
    if (s == XM_UNSUPPORTED && !t->needs_tokenizer)
        xm_log(XM_LOG_WARNING, "texts cannot be used, only token ids: %s", why.text);
    else if (s != XM_OK && !is_missing)
        return xm_fail(err, s, "%s", why.text);
    if (is_missing && t->needs_tokenizer)
        return xm_fail(err, XM_NOT_FOUND, "%.150s: there is no %s: %s", t->model,
                       p->reader->tokenizer, t->needs_tokenizer);
    xm_package_read(p, XM_PACKAGE_FACTS, NULL);
    XM_TRY(read_chat_template(p, t, err));
    return xm_package_read(p, XM_PACKAGE_GENERATION, err);
}

/* Prints a failure of a property. The sentence begins with the property's name, which is replaced
 * by the option or variable that the user set. */
static int
fail_setting(const struct xm_cli_setting *s, const char *sentence)
{
    const char *kind = s->option[0] == '-' ? "option " : "";
    const size_t n = strlen(s->key);
    if (strncmp(sentence, s->key, n) == 0 && sentence[n] == ' ')
        return xm_cli_usage("%s%s%s", kind, s->option, sentence + n);
    return xm_cli_usage("%s%s: %s", kind, s->option, sentence);
}

const char *
xm_cli_copy_weights(const char *way)
{
    if (!way)
        return NULL;
    return strcmp(way, "map") == 0 ? "NO" : strcmp(way, "copy") == 0 ? "YES" : "AUTO";
}

const char *
xm_cli_split_policy(const char *split)
{
    static const struct {
        const char *split, *policy;
    } policies[] = {{"tensor", "TENSOR_PARALLEL"},
                    {"expert", "EXPERT_PARALLEL"},
                    {"layer", "PIPELINE_PARALLEL"}};
    for (size_t i = 0; split && i < XM_ARRAY_LEN(policies); i++) {
        if (strcmp(split, policies[i].split) == 0)
            return policies[i].policy;
    }
    return NULL;
}

int
xm_cli_check_settings(const struct xm_cli_setting *settings, size_t n)
{
    struct xm_error err = {0};
    struct xm_config config;
    xm_config_init(&config);
    for (size_t i = 0; i < n; i++) {
        const struct xm_cli_setting *s = &settings[i];
        if (s->value && (xm_config_set(&config, s->key, s->value, &err) != XM_OK ||
                         xm_config_check(&config, &err) != XM_OK))
            return fail_setting(s, err.text);
    }
    return XM_EXIT_OK;
}

/* The settings of a target's options. `ubatch` is memory for a number's text, `cache_dir` the
 * folder from xm_cli_cache_open. */
enum { N_SETTINGS = 19 };
static void
find_settings(const struct xm_cli_target *t, const char *cache_dir,
              char ubatch[XM_CLI_NUMBER], struct xm_cli_setting out[N_SETTINGS])
{
    snprintf(ubatch, XM_CLI_NUMBER, "%" PRIu64, t->ubatch);
    const struct xm_cli_setting settings[N_SETTINGS] = {
        {"--precision", "INFERENCE_PRECISION_HINT", t->precision},
        {"--dynamic-quantization", "DYNAMIC_QUANTIZATION_GROUP_SIZE", t->quantisation},
        {"--kv", "KV_CACHE_PRECISION", t->kv},
        {"--cache-type-k", "KEY_CACHE_PRECISION", t->key_cache},
        {"--cache-type-v", "VALUE_CACHE_PRECISION", t->value_cache},
        {"--kv-memory", "XM_KV_MEMORY", t->kv_memory},
        {"--offload", "OFFLOAD_RATIO", t->offload},
        {"--expert-cache", "XM_EXPERT_CACHE", t->expert_cache},
        {"--weights", "XM_COPY_WEIGHTS", xm_cli_copy_weights(t->weights)},
        {t->no_tune ? "--no-tune" : "XM_TUNED_KERNELS", "XM_TUNED_KERNELS",
         t->no_tune ? "NO" : xm_env("XM_TUNED_KERNELS")},
        {"--split", "MODEL_DISTRIBUTION_POLICY", xm_cli_split_policy(t->split)},
        {"--messages", "XM_MESSAGE_PRECISION", t->messages},
        {"--ubatch", "XM_UBATCH", t->ubatch ? ubatch : NULL},
        {"--cache-dir", "CACHE_DIR", cache_dir},
        {"XM_NUMERICS", "XM_NUMERICS", t->numerics ? t->numerics : xm_env("XM_NUMERICS")},
        {"XM_REPLAY", "XM_REPLAY", xm_env("XM_REPLAY")},
        {"XM_AHEAD", "XM_AHEAD", xm_env("XM_AHEAD")},
        {"--profile", "PERF_COUNT", t->measures ? "YES" : NULL},
        {"compile", "CACHE_MODE", t->refers ? "OPTIMIZE_SIZE" : NULL},
    };
    memcpy(out, settings, sizeof(settings));
}

enum xm_status
xm_cli_target_config(const struct xm_cli_target *t, struct xm_config *c,
                     struct xm_error *err)
{
    struct xm_cli_setting settings[N_SETTINGS];
    char ubatch[XM_CLI_NUMBER];
    find_settings(t, NULL, ubatch, settings);
    xm_config_init(c);
    for (size_t i = 0; i < N_SETTINGS; i++)
        if (settings[i].value)
            XM_TRY(xm_config_set(c, settings[i].key, settings[i].value, err));
    return XM_OK;
}

static int
check_tune(const struct xm_cli_target *t)
{
    return t->tune && t->no_tune ? xm_cli_usage("give only one of --tune and --no-tune")
                                 : XM_EXIT_OK;
}

/* Reads the devices in a mesh's name; in an MPI job each process has one. None: it is not a
 * mesh. */
static enum xm_status
read_mesh(const char *device, struct xm_mesh_devices *out, struct xm_error *err)
{
    uint32_t rank, processes = xm_mpi_ranks(&rank);
    const char *list = xm_mesh_list(device);
    out->n = 0;
    return list ? xm_mesh_parse(list, processes > 1 ? processes : 0, out, err) : XM_OK;
}

void
xm_cli_check_split(const char *split, const char *device)
{
    static bool is_said; /* once, although bench opens several models */
    uint32_t rank;
    if (!split || is_said || strcmp(split, "auto") == 0 || xm_mesh_list(device) ||
        xm_mpi_ranks(&rank) > 1)
        return;
    is_said = true;
    xm_log(XM_LOG_WARNING,
           "option --split %s has no effect, because %s is one device; --help says how "
           "to name several devices",
           split, device ? device : "GPU");
}

int
xm_cli_refuse_reference(const char *device, const char *option, const char *why)
{
    return device && strcmp(device, "REFERENCE") == 0
               ? xm_cli_usage("option %s: device REFERENCE %s", option, why)
               : XM_EXIT_OK;
}

void
xm_cli_leave_out_reference(struct xm_cli_option *options, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (options[i].offset == XM_CLI_TARGET(device) && options[i].letter == 'd') {
            options[i].help = XM_CLI_DEVICES("CPU");
            options[i].choices = "GPU CPU";
        }
    }
}

/* Checks the spelling of a mesh's name; whether its devices exist is checked when the model is
 * opened. */
static int
check_mesh(const char *device)
{
    struct xm_mesh_devices names;
    struct xm_error err = {0};
    const char *shares = device ? strchr(device, '(') : NULL;
    if (read_mesh(device, &names, &err) == XM_OK)
        return XM_EXIT_OK;
    /* (0,7;0,3) or (0,7,0,3): the decimal comma of some languages */
    size_t n_commas = 0, n_devices = 1;
    for (const char *at = device; *at; at++) {
        n_commas += *at == ',' && shares && at > shares;
        n_devices += *at == ',' && shares && at < shares;
    }
    const bool has_decimal_commas =
        shares && (strchr(shares, ';') || n_commas >= n_devices);
    return xm_cli_usage("option -d: %s%s", err.text,
                        has_decimal_commas ? "; write '.' as the decimal point" : "");
}

int
xm_cli_check_target(const struct xm_cli_target *t)
{
    struct xm_cli_setting settings[N_SETTINGS];
    char ubatch[XM_CLI_NUMBER];
    find_settings(t, NULL, ubatch, settings);
    int code = check_tune(t);
    if (code == XM_EXIT_OK)
        code = check_mesh(t->device);
    return code == XM_EXIT_OK ? xm_cli_check_settings(settings, N_SETTINGS) : code;
}

/* Imports an exported model. The package is that of the original model, which has the text side and
 * the facts. Its graph may have been deleted. */
static enum xm_status
import(struct xm_cli_model *m, const struct xm_cli_target *t,
       const struct xm_import *from, const struct xm_property *properties, uint32_t n,
       struct xm_error *err)
{
    struct xm_strbuf path = {0};
    enum xm_status s = xm_info_model_of(from, &path, err);
    if (s == XM_OK)
        s = xm_package_open(xm_strbuf_text(&path), &m->package, err);
    xm_strbuf_free(&path);
    XM_TRY(s);
    XM_TRY(read_text_side(m->package, t, err));
    return xm_core_import(m->core, from, t->device, properties, n, &m->compiled, err);
}

/* Imports the model if the path is an exported one (*is_one); then m is complete. */
static enum xm_status
try_import(struct xm_cli_model *m, const struct xm_cli_target *t,
           const struct xm_compile_options *options, const struct xm_property *properties,
           uint32_t n, bool *is_one, struct xm_error *err)
{
    struct xm_import from;
    *is_one = xm_import_open(t->model, &from, NULL) == XM_OK && xm_blob_recognises(&from);
    enum xm_status s = XM_OK;
    if (*is_one)
        s = import(m, t, &from, properties, n, err);
    if (*is_one && s == XM_OK && !(options && options->sampled_logits))
        s = xm_fail(err, XM_UNSUPPORTED,
                    "a compiled model can be used only by generate, chat, serve and "
                    "bench: give "
                    "the model itself");
    xm_import_close(&from);
    if (s != XM_OK)
        xm_error_prefix(err, "%.150s", t->model);
    return s;
}

/* Whether the driver must compile code at launches that it has not compiled before. */
static bool
has_launches_to_build(const struct xm_cli_model *m, const struct xm_cli_target *t)
{
    struct xm_plugin *plugin = NULL;
    uint32_t index = 0;
    struct xm_compiled_stats stats = {0};
    if (xm_core_find(m->core, t->device, &plugin, &index, NULL) != XM_OK ||
        !plugin->ops->info || !m->compiled->ops->stats ||
        !xm_device_has(plugin->ops->info(plugin, index), XM_CAP_DRIVER_FILES))
        return false;
    m->compiled->ops->stats(m->compiled, &stats);
    return stats.builds.built > 0 || t->warm_up == XM_CLI_WARM_UP_ALWAYS;
}

static void
warm_up(const struct xm_cli_model *m, const struct xm_cli_target *t)
{
    const bool is_wanted = t->warm_up == XM_CLI_WARM_UP_ALWAYS ||
                           (t->warm_up != XM_CLI_NO_WARM_UP && xm_progress_is_shown());
    if (is_wanted && !xm_dry_run() && has_launches_to_build(m, t))
        xm_token_runner_warm_up(
            m->compiled, t->warm_up == XM_CLI_WARM_UP_TOKEN ? 0 : XM_WARM_UP_TOKENS);
}

/* Whether the device's plugin has the property; other plugins may refuse unknown properties. */
static bool
has_property(const struct xm_cli_model *m, const struct xm_cli_target *t, const char *key)
{
    struct xm_plugin *plugin = NULL;
    struct xm_strbuf value = {0};
    uint32_t index = 0;
    const bool has = xm_core_find(m->core, t->device, &plugin, &index, NULL) == XM_OK &&
                     plugin->ops->get_property(plugin, index, key, &value, NULL) == XM_OK;
    xm_strbuf_free(&value);
    return has;
}

/* The properties of a target's options; `ubatch` is memory for a number's text. */
struct properties {
    struct xm_property list[N_SETTINGS + 1];
    uint32_t n;
    char ubatch[XM_CLI_NUMBER];
};

static void
find_properties(const struct xm_cli_model *m, const struct xm_cli_target *t,
                const char *cache_dir, struct properties *out)
{
    struct xm_cli_setting settings[N_SETTINGS];
    static const struct xm_property in_16_bits = {"DYNAMIC_QUANTIZATION_GROUP_SIZE", "0"};
    out->n = 0;
    find_settings(t, cache_dir, out->ubatch, settings);
    for (size_t i = 0; i < N_SETTINGS; i++) {
        if (settings[i].value)
            out->list[out->n++] =
                (struct xm_property){settings[i].key, settings[i].value};
    }
    if (t->is_exact && !t->quantisation && has_property(m, t, in_16_bits.key))
        out->list[out->n++] = in_16_bits;
}

/* Returns the last dimension of a graph's first result; 0: it is not constant. */
static uint64_t
width_of_logits(const struct xm_graph *g)
{
    xm_for_each_node(n, g)
    {
        const struct xm_shape *s =
            n->op == XM_OP_RESULT ? &xm_in(n, 0)->type.shape : NULL;
        if (s && s->rank && xm_dim_is_const(s->dim[s->rank - 1]))
            return (uint64_t)s->dim[s->rank - 1].n;
        if (s)
            return 0;
    }
    return 0;
}

/* Reads the graph for text generation, or for an embedder. */
static enum xm_status
read_graph(struct xm_cli_model *m, const struct xm_cli_target *t, struct xm_graph **out,
           struct xm_error *err)
{
    if (t->embeds != XM_CLI_EMBEDS) {
        XM_TRY(xm_package_read_graph(m->package, NULL, out, err));
        if (t->embeds == XM_CLI_NO_EMBEDDINGS || !xm_graph_gives_hidden_states(*out)) {
            m->vocabulary = width_of_logits(*out);
            return XM_OK;
        }
        xm_graph_destroy(*out);
    }
    m->gives_hidden = true;
    return xm_embedder_read_graph(m->package, out, &m->vocabulary, err);
}

static enum xm_status
compile(struct xm_cli_model *m, const struct xm_cli_target *t, const char *cache_dir,
        const struct xm_compile_options *options, int *code, struct xm_error *err)
{
    struct xm_graph *g = NULL;
    struct properties p;
    find_properties(m, t, cache_dir, &p);
    xm_progress_show("reading %s", t->model);
    bool is_exported;
    XM_TRY(try_import(m, t, options, p.list, p.n, &is_exported, err));
    if (is_exported) {
        *code = t->check ? t->check(m, t->check_ctx) : XM_EXIT_OK;
        return XM_OK;
    }
    XM_TRY(xm_cli_open_package(t->model, &m->package, err));
    XM_TRY(read_graph(m, t, &g, err));
    enum xm_status s = read_text_side(m->package, t, err);
    if (s == XM_OK && t->check)
        *code = t->check(m, t->check_ctx);
    if (s != XM_OK || *code != XM_EXIT_OK) {
        xm_graph_destroy(g);
        return s;
    }
    xm_progress_show("compiling %s", t->model);
    xm_cli_show_builds();
    s = xm_core_compile(m->core, g, t->device, p.list, p.n, options, &m->compiled, err);
    if (s == XM_OK)
        warm_up(m, t);
    xm_cli_hide_builds();
    return s;
}

enum xm_status
xm_cli_compile_hidden(const struct xm_cli_model *m, const struct xm_cli_target *t,
                      struct xm_compiled **out, struct xm_error *err)
{
    struct xm_strbuf cache = {0};
    struct xm_graph *g = NULL;
    struct properties p;
    uint64_t vocabulary;
    enum xm_status s = xm_cli_cache_open(t->cache_dir, &cache, err);
    if (s == XM_OK)
        s = xm_embedder_read_graph(m->package, &g, &vocabulary, err);
    if (s == XM_OK) {
        find_properties(m, t, xm_strbuf_text(&cache), &p);
        s = xm_core_compile(m->core, g, t->device, p.list, p.n, NULL, out, err);
    }
    xm_strbuf_free(&cache);
    return s;
}

void
xm_cli_name_template(const struct xm_cli_model *m, const struct xm_cli_target *t,
                     struct xm_error *err)
{
    if (err && strncmp(err->text, "chat template", strlen("chat template")) == 0)
        xm_error_prefix(err, "%.150s",
                        t->chat_template ? t->chat_template : m->package->path);
}

enum xm_status
xm_cli_pooling(struct xm_package *p, const char *given, enum xm_pooling *out,
               struct xm_error *err)
{
    struct xm_error why = {0};
    if (given && xm_pooling_of(given, out))
        return XM_OK;
    const enum xm_status s = xm_package_read(p, XM_PACKAGE_POOLING, &why);
    *out = p->pooling;
    return s == XM_OK ? XM_OK
                      : xm_fail(err, s, "%s; choose a pooling with --pooling", why.text);
}

int
xm_cli_check_ranks(const struct xm_core *core, const char *device)
{
    struct xm_mesh_devices names;
    struct xm_plugin *plugin = NULL;
    struct xm_error err = {0};
    uint32_t rank, index = 0;
    const bool is_job = xm_mpi_ranks(&rank) > 1;
    int code = XM_EXIT_OK;
    if (read_mesh(device, &names, &err) != XM_OK)
        return XM_EXIT_OK; /* check_mesh has refused it already */
    for (uint32_t i = 0; i < names.n && code == XM_EXIT_OK; i++) {
        const char *name = names.name[i];
        if ((!is_job || i == rank) &&
            xm_core_find(core, name, &plugin, &index, &err) != XM_OK)
            code = xm_cli_no_device("-d", name, &err);
    }
    return code;
}

/* Tells a person at a terminal that a processor runs the model although a GPU was asked for, which
 * is also what no -d means: without a driver for GPUs, the first device is the processor. For
 * commands whose speed matters. */
static void
say_processor(const char *device, const struct xm_device_info *found)
{
    const bool wants_gpu = !device || strncmp(device, "GPU", 3) == 0;
    if (wants_gpu && xm_progress_is_shown() && found->kind == XM_DEVICE_CPU)
        xm_say("there is no GPU with an OpenCL driver: the processor runs the model");
}

static int
check_target(const struct xm_cli_model *m, const struct xm_cli_target *t,
             const char *cache_dir)
{
    struct xm_plugin *plugin = NULL;
    struct xm_cli_setting settings[N_SETTINGS];
    struct xm_error err = {0};
    uint32_t index = 0;
    char ubatch[XM_CLI_NUMBER];
    find_settings(t, cache_dir, ubatch, settings);
    int code = check_tune(t);
    if (code == XM_EXIT_OK)
        code = check_mesh(t->device);
    if (code == XM_EXIT_OK)
        code = xm_cli_check_settings(settings, N_SETTINGS);
    if (code != XM_EXIT_OK)
        return code;
    if (xm_core_find(m->core, t->device, &plugin, &index, &err) != XM_OK)
        return xm_cli_no_device("-d", t->device, &err);
    if (t->tunes && plugin->ops->info)
        say_processor(t->device, plugin->ops->info(plugin, index));
    xm_cli_check_split(t->split, t->device);
    return xm_cli_check_ranks(m->core, t->device);
}

int
xm_cli_model_open(struct xm_cli_model *m, const struct xm_cli_target *t,
                  const struct xm_compile_options *options)
{
    struct xm_error err = {0};
    double start = xm_now();
    struct xm_strbuf cache = {0};
    *m = (struct xm_cli_model){0};
    enum xm_status s = xm_cli_cache_open(t->cache_dir, &cache, &err);
    if (s == XM_OK)
        s = xm_core_create(&m->core, &err);
    int code = s == XM_OK ? check_target(m, t, xm_strbuf_text(&cache)) : XM_EXIT_OK;
    if (s == XM_OK && code == XM_EXIT_OK)
        s = compile(m, t, xm_strbuf_text(&cache), options, &code, &err);
    if (s == XM_OK && code == XM_EXIT_OK)
        m->tuner = xm_cli_tuner_start(m, t, xm_strbuf_text(&cache));
    xm_strbuf_free(&cache);
    xm_progress_clear();
    if (s != XM_OK)
        code = xm_cli_failed(&err);
    if (code != XM_EXIT_OK)
        xm_cli_model_close(m);
    m->load_s = xm_now() - start;
    m->load_peak_rss = xm_cli_peak_rss();
    return code;
}

void
xm_cli_model_close(struct xm_cli_model *m)
{
    xm_cli_tuner_end(m->tuner);
    xm_package_close(m->package);
    xm_compiled_unref(m->compiled);
    xm_core_destroy(m->core);
    *m = (struct xm_cli_model){0};
}

uint64_t
xm_cli_vocabulary(const struct xm_cli_model *m)
{
    return m->vocabulary ? m->vocabulary
           : m->compiled ? xm_compiled_vocabulary(m->compiled)
                         : UINT64_MAX;
}

const float *
xm_cli_logits_of(const struct xm_token_runner *r, uint64_t wanted, uint64_t *vocabulary,
                 struct xm_error *err)
{
    uint64_t rows;
    const float *logits = xm_token_runner_logits(r, &rows, vocabulary);
    if (rows >= wanted)
        return logits + (rows - wanted) * *vocabulary;
    xm_fail(err, XM_UNSUPPORTED, "the model computes logits only for its last position");
    return NULL;
}

static void
add_property(const struct xm_cli_model *m, const char *key, struct xm_strbuf *out)
{
    struct xm_strbuf text = {0};
    if (m->compiled->ops->get_property(m->compiled, key, &text, NULL) == XM_OK)
        xm_strbuf_printf(out, "%s%s", out->n ? ": " : "", xm_strbuf_text(&text));
    xm_strbuf_free(&text);
}

void
xm_cli_model_device(const struct xm_cli_model *m, struct xm_strbuf *out)
{
    add_property(m, "EXECUTION_DEVICES", out);
    add_property(m, "FULL_DEVICE_NAME", out);
}

void
xm_cli_add_memory_kinds(struct xm_json_out *j, yyjson_mut_val *o,
                        const struct xm_memory_stats *s)
{
    for (int k = 0; k < XM_MEMORY_KIND_COUNT; k++) {
        yyjson_mut_val *kind =
            xm_json_add_object(j, o, xm_memory_kind_text((enum xm_memory_kind)k));
        xm_json_add_whole(j, kind, "now", s->now[k]);
        xm_json_add_whole(j, kind, "peak", s->peak[k]);
        xm_json_add_whole(j, kind, "buffers", s->buffers[k]);
    }
}

int
xm_cli_prompt(const struct xm_cli_model *m, const char *ids, const char *text, size_t n,
              struct xm_token_list *out)
{
    const struct xm_prompt prompt = {.kind = XM_PROMPT_TEXT, .text = text, .n = n};
    const uint64_t vocabulary = xm_cli_vocabulary(m);
    struct xm_error err = {0};
    if (ids)
        return xm_cli_ids_read_row(ids, vocabulary, out);
    if (xm_prompt_encode(m->package, &prompt, vocabulary, out, &err) != XM_OK)
        return xm_cli_failed(&err);
    return out->n ? XM_EXIT_OK
                  : xm_cli_usage("the prompt is empty: there is nothing to continue");
}
