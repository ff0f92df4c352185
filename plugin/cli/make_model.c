/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe make-model: makes a synthetic model of any dimensions, for tests and measurements.
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugin/cli/cli.h"
#include "plugin/cli/quantity.h"
#include "plugin/program_util/lines.h"
#include "plugin/program_util/progress.h"
#include "plugin/program_util/suggest.h"
#include "plugin/writers/synthetic.h"
#include "runtime/util/new_file.h"

struct args {
    const char *arch, *format, *weights, *form, *path;
    uint64_t hidden, layers, intermediate, experts, top_k, moe_intermediate;
    uint64_t heads, kv_heads, head_dim, vocabulary, window, group, seed;
    bool blank, force, list;
};

/* An option that was not given keeps the preset's value. */
static const uint64_t not_given = UINT64_MAX;

static void
add_presets(struct xm_strbuf *out)
{
    const struct xm_preset *p;
    for (size_t i = 0; (p = xm_preset_at(i)) != NULL; i++)
        xm_strbuf_printf(out, "%s ", p->name);
}

/* clang-format off */
#define AT(member) offsetof(struct args, member)
static const struct xm_cli_option options[] = {
    XM_CLI_GROUP("The file", "xemoe make-model -o small --arch qwen3moe --format gguf --weights q8_0"),
    { 'o', "output",           XM_CLI_WORD,  AT(path),             "PATH", "folder to write, or a file name that ends in .gguf (required)", "out" },
    { 0,   "arch",             XM_CLI_WORD,  AT(arch),             "NAME", "a small model of this architecture, or a model with the sizes of a known one; see --list (qwen3moe)", NULL, NULL, add_presets },
    { 'l', "list",             XM_CLI_FLAG,  AT(list),             NULL,   "list the names for --arch, with their sizes" },
    { 0,   "format",           XM_CLI_WORD,  AT(format),           "NAME", "ir (default) or gguf", NULL, "ir gguf" },
    { 0,   "weights",          XM_CLI_WORD,  AT(weights),          "TYPE", "ir: u4 (default), i4, u8, i8, f16, bf16, f32; gguf: q4_k (default), another block format, f16, bf16, f32" },
    { 0,   "group",            XM_CLI_WHOLE, AT(group),            "G",    "ir: columns per scale; 0: one scale per row (up to 64, as rows allow)" },
    { 0,   "form",             XM_CLI_WORD,  AT(form),             "FORM", "ir: structure of expert blocks: exporter (default), or r1 (4-D, as older exporters write)", NULL, "exporter r1" },
    { 0,   "seed",             XM_CLI_WHOLE, AT(seed),             "S",    "seed of the random weights (1)" },
    { 0,   "blank",            XM_CLI_FLAG,  AT(blank),            NULL,   "write no weights but a sparse file, which is enough for 'xemoe plan'" },
    { 0,   "force",            XM_CLI_FLAG,  AT(force),            NULL,   "replace an existing file, or a model in an existing folder" },
    XM_CLI_GROUP("Sizes", "xemoe make-model -o small --arch qwen3moe --layers 2 --experts 8 --top-k 2"),
    { 0,   "hidden",           XM_CLI_COUNT, AT(hidden),           "H",    "hidden size; default of this and all options below: the preset of --arch" },
    { 0,   "layers",           XM_CLI_COUNT, AT(layers),           "L",    "decoder layers" },
    { 0,   "intermediate",     XM_CLI_COUNT, AT(intermediate),     "I",    "width of a dense feed-forward network" },
    { 0,   "experts",          XM_CLI_COUNT, AT(experts),          "E",    "experts in each layer" },
    { 0,   "top-k",            XM_CLI_COUNT, AT(top_k),            "K",    "experts per token" },
    { 0,   "moe-intermediate", XM_CLI_COUNT, AT(moe_intermediate), "I",    "width of an expert" },
    { 0,   "heads",            XM_CLI_COUNT, AT(heads),            "N",    "query heads" },
    { 0,   "kv-heads",         XM_CLI_COUNT, AT(kv_heads),         "N",    "key and value heads" },
    { 0,   "head-dim",         XM_CLI_COUNT, AT(head_dim),         "D",    "size of a head" },
    { 0,   "window",           XM_CLI_COUNT, AT(window),           "N",    "window of layers with a sliding window" },
    { 0,   "vocab",            XM_CLI_COUNT, AT(vocabulary),       "V",    "tokens of the vocabulary, at least 258" },
};
#undef AT
/* clang-format on */

static void
set_defaults(struct args *a)
{
    *a = (struct args){.arch = "qwen3moe", .form = "exporter", .seed = 1};
    a->hidden = a->layers = a->intermediate = a->experts = a->top_k = not_given;
    a->moe_intermediate = a->heads = a->kv_heads = a->head_dim = not_given;
    a->vocabulary = a->window = a->group = not_given;
}

static void
list_presets(void)
{
    enum { ALL_COLUMNS = 72 }; /* a narrower terminal gets fewer columns */
    const struct xm_preset *p;
    struct xm_lines o = xm_lines_to(stdout);
    const bool is_wide = o.columns >= ALL_COLUMNS;
    xm_lines_add(&o, "%-16s", "name");
    if (is_wide)
        xm_lines_add(&o, " %-9s", "graph");
    xm_lines_add(&o, " %6s %6s %7s", "layers", "hidden", "experts");
    if (is_wide)
        xm_lines_add(&o, " %5s %6s %10s", "top-k", "width", "vocabulary");
    for (size_t i = 0; (p = xm_preset_at(i)) != NULL; i++) {
        xm_lines_add(&o, "\n%-16s", p->name);
        if (is_wide)
            xm_lines_add(&o, " %-9s", p->arch);
        xm_lines_add(&o, " %6" PRIu32 " %6" PRIu32 " %7" PRIu32, p->layers, p->hidden,
                     p->experts);
        if (is_wide)
            xm_lines_add(&o, " %5" PRIu32 " %6" PRIu32 " %10" PRIu32, p->top_k,
                         p->experts ? p->expert_ffn : p->ffn, p->vocabulary);
    }
    xm_lines_add(&o, "\n");
    xm_lines_end(&o);
}

static int
no_preset(const char *name)
{
    struct xm_strbuf names = {0};
    struct xm_suggestion near = xm_suggest_for(name, strlen(name));
    add_presets(&names);
    xm_suggest_list(&near, xm_strbuf_text(&names));
    xm_strbuf_free(&names);
    return near.best
               ? xm_cli_usage("--arch is '%.60s': did you mean %s?", name, near.best)
               : xm_cli_usage("--arch is '%.60s', which is not a known architecture; "
                              "'xemoe make-model --list' prints them",
                              name);
}

/* Sets the given sizes in the preset; refuses values that its members cannot hold. */
static int
fill_sizes(const struct args *a, struct xm_preset *p)
{
    const struct {
        const char *name;
        uint64_t value;
        uint32_t *out;
    } numbers[] = {
        {"--hidden", a->hidden, &p->hidden},
        {"--layers", a->layers, &p->layers},
        {"--intermediate", a->intermediate, &p->ffn},
        {"--experts", a->experts, &p->experts},
        {"--top-k", a->top_k, &p->top_k},
        {"--moe-intermediate", a->moe_intermediate, &p->expert_ffn},
        {"--heads", a->heads, &p->heads},
        {"--kv-heads", a->kv_heads, &p->kv_heads},
        {"--head-dim", a->head_dim, &p->head_dim},
        {"--window", a->window, &p->window},
        {"--vocab", a->vocabulary, &p->vocabulary},
    };
    const struct xm_preset *preset = xm_preset_find(a->arch);
    if (!preset)
        return no_preset(a->arch);
    *p = *preset;
    for (size_t i = 0; i < XM_ARRAY_LEN(numbers); i++) {
        if (numbers[i].value == not_given)
            continue;
        if (numbers[i].value > 1u << 20)
            return xm_cli_usage("%s is %" PRIu64 ", at most %u", numbers[i].name,
                                numbers[i].value, 1u << 20);
        *numbers[i].out = (uint32_t)numbers[i].value;
    }
    if (p->experts && p->top_k > p->experts)
        return xm_cli_usage("--top-k is %" PRIu32 ", but a layer has only %" PRIu32
                            " experts: give a smaller --top-k, or more --experts",
                            p->top_k, p->experts);
    return XM_EXIT_OK;
}

static int
fill(const struct args *a, struct xm_synthetic *m)
{
    struct xm_error err = {0};
    const bool is_file = a->path && xm_synthetic_is_file(a->path);
    const char *format = a->format ? a->format : is_file ? "gguf" : "ir";
    xm_synthetic_init(m);
    int code = fill_sizes(a, &m->sizes);
    if (code != XM_EXIT_OK)
        return code;
    if (strcmp(format, "ir") != 0 && strcmp(format, "gguf") != 0)
        return xm_cli_usage("--format is '%s', expected ir or gguf", format);
    m->format = strcmp(format, "ir") == 0 ? XM_SYNTHETIC_IR : XM_SYNTHETIC_GGUF;
    if (is_file && m->format == XM_SYNTHETIC_IR)
        return xm_cli_usage("an IR needs a folder, but '%s' ends like a GGUF file",
                            a->path);
    if (strcmp(a->form, "exporter") != 0 && strcmp(a->form, "r1") != 0)
        return xm_cli_usage("--form is '%s', expected exporter or r1", a->form);
    m->r1 = strcmp(a->form, "r1") == 0;
    m->seed = a->seed;
    m->blank = a->blank;
    const char *weights = a->weights                     ? a->weights
                          : m->format == XM_SYNTHETIC_IR ? "u4"
                                                         : "q4_k";
    if (xm_synthetic_set_weights(m, weights, &err) != XM_OK)
        return xm_cli_usage("option --weights: %s", err.text);
    if (a->group != not_given && a->group > UINT32_MAX)
        return xm_cli_usage("--group is %" PRIu64 ", at most %" PRIu32, a->group,
                            UINT32_MAX);
    m->group = a->group == not_given ? xm_synthetic_common_group(m) : (uint32_t)a->group;
    return xm_synthetic_check(m, &err) == XM_OK ? XM_EXIT_OK
                                                : xm_cli_usage("%s", err.text);
}

/* Whether an entry may be in the output folder: "." and "..", and files of an interrupted earlier
 * run. */
static bool
is_leftover(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
           xm_new_file_is_beside(name);
}

/* Refuses a folder with other files, because a model may have hundreds of gigabytes, and the path
 * may be mistyped. */
static int
check_path(const struct args *a)
{
    if (!a->path)
        return xm_cli_usage("which file or folder? Give -o PATH");
    if (xm_synthetic_is_file(a->path) && !a->force && access(a->path, F_OK) == 0)
        return xm_cli_usage(
            "%s exists already: choose another name, or give --force to replace it",
            a->path);
    DIR *folder = a->force ? NULL : opendir(a->path);
    const struct dirent *entry = folder ? readdir(folder) : NULL;
    while (entry && is_leftover(entry->d_name))
        entry = readdir(folder);
    int code = XM_EXIT_OK;
    if (entry)
        code = xm_cli_usage("the folder %s is not empty: choose another folder, or give "
                            "--force to replace a model in it",
                            a->path);
    if (folder)
        closedir(folder);
    return code;
}

/* The progress of writing. If standard error is not a terminal, one line is printed, because large
 * models take minutes. */
struct progress {
    struct xm_strbuf name; /* of the folder or the file, safe for a terminal */
    bool blank, told;
};

static void
show_progress(uint64_t done, uint64_t all, void *ctx)
{
    struct progress *p = ctx;
    if (!p->told && !p->blank)
        fprintf(stderr, "writing about %" PRIu64 " MiB to %s\n", all >> 20,
                xm_strbuf_text(&p->name));
    p->told = true;
    xm_progress_show("writing %" PRIu64 " of about %" PRIu64 " MiB", done >> 20,
                     all >> 20);
}

int
xm_cli_make_model(int argc, char **argv)
{
    static const struct xm_cli_spec spec = {
        .usage = "xemoe make-model -o PATH [options]",
        .about = "Writes a synthetic model as OpenVINO IR or GGUF, with random weights "
                 "and a\ntokenizer in which each byte of a text is a token. Memory use "
                 "does not depend on\nthe size of the model.\n",
        .own = options,
        .n_own = XM_ARRAY_LEN(options),
    };
    struct xm_error err = {0};
    struct xm_synthetic m;
    struct args a;
    bool done;
    set_defaults(&a);
    int code = xm_cli_begin(&spec, argc, argv, &a, &done);
    if (done)
        return code;
    if (a.list) {
        list_presets();
        return xm_cli_flush();
    }
    code = fill(&a, &m);
    if (code == XM_EXIT_OK)
        code = check_path(&a);
    if (code != XM_EXIT_OK)
        return code;
    m.keeps = !a.force;
    struct progress progress = {.blank = a.blank};
    xm_cli_add_name(&progress.name, a.path);
    enum xm_status s = xm_synthetic_write(&m, a.path, show_progress, &progress, &err);
    xm_progress_clear();
    if (s == XM_OK)
        printf("%s: about %" PRIu64 " MiB of weights\n", xm_strbuf_text(&progress.name),
               xm_synthetic_bytes(&m) >> 20);
    xm_strbuf_free(&progress.name);
    if (s != XM_OK)
        return xm_cli_failed(&err);
    return xm_cli_flush();
}
