/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe make-model: a synthetic model of any dimensions, for tests and measurements.
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plugin/cli/cli.h"
#include "plugin/cli/progress.h"
#include "plugin/writers/synthetic.h"

struct args {
    const char *arch, *weights, *form, *folder;
    uint64_t hidden, layers, experts, top_k, moe_intermediate;
    uint64_t heads, kv_heads, head_dim, vocabulary, group, seed;
    bool blank, force;
};

/* clang-format off */
#define AT(member) offsetof(struct args, member)
static const struct xm_cli_option options[] = {
    { 'o', "output",           XM_CLI_TEXT,  AT(folder),           "DIR",  "folder to write; needed" },
    { 0,   "arch",             XM_CLI_TEXT,  AT(arch),             "NAME", "layer pattern: qwen3moe (default, the only one)" },
    { 0,   "hidden",           XM_CLI_COUNT, AT(hidden),           "H",    "hidden size (256)" },
    { 0,   "layers",           XM_CLI_COUNT, AT(layers),           "L",    "decoder layers (2)" },
    { 0,   "experts",          XM_CLI_COUNT, AT(experts),          "E",    "experts of a layer (16)" },
    { 0,   "top-k",            XM_CLI_COUNT, AT(top_k),            "K",    "experts of a token (4)" },
    { 0,   "moe-intermediate", XM_CLI_COUNT, AT(moe_intermediate), "I",    "width of an expert (256)" },
    { 0,   "heads",            XM_CLI_COUNT, AT(heads),            "N",    "query heads (8)" },
    { 0,   "kv-heads",         XM_CLI_COUNT, AT(kv_heads),         "N",    "key and value heads (2)" },
    { 0,   "head-dim",         XM_CLI_COUNT, AT(head_dim),         "D",    "size of a head (64)" },
    { 0,   "vocab",            XM_CLI_COUNT, AT(vocabulary),       "V",    "vocabulary, at least 258 (1024)" },
    { 0,   "weights",          XM_CLI_TEXT,  AT(weights),          "TYPE", "u4 (default), i4, u8, i8 or f16" },
    { 0,   "group",            XM_CLI_WHOLE, AT(group),            "G",    "columns a scale; 0: one scale a row (64)" },
    { 0,   "form",             XM_CLI_TEXT,  AT(form),             "FORM", "expert block: exporter (default), or r1 (4-D, older exporters)" },
    { 0,   "seed",             XM_CLI_WHOLE, AT(seed),             "S",    "of the random weights (1)" },
    { 0,   "blank",            XM_CLI_FLAG,  AT(blank),            NULL,   "no weights: a file with holes, enough for 'xemoe plan'" },
    { 0,   "force",            XM_CLI_FLAG,  AT(force),            NULL,   "also into a folder that is not empty" },
};
#undef AT
/* clang-format on */

static void
set_defaults(struct args *a)
{
    struct xm_synthetic m;
    xm_synthetic_init(&m);
    *a = (struct args){.arch = "qwen3moe",
                       .weights = "u4",
                       .form = "exporter",
                       .hidden = m.hidden,
                       .layers = m.layers,
                       .experts = m.experts,
                       .top_k = m.top_k,
                       .moe_intermediate = m.moe_intermediate,
                       .heads = m.heads,
                       .kv_heads = m.kv_heads,
                       .head_dim = m.head_dim,
                       .vocabulary = m.vocabulary,
                       .group = m.group,
                       .seed = m.seed};
}

/* Into the writer's struct; numbers that its members cannot hold are refused. */
static int
fill(const struct args *a, struct xm_synthetic *m)
{
    const struct {
        const char *name;
        uint64_t value;
        uint32_t *out;
    } numbers[] = {
        {"--hidden", a->hidden, &m->hidden},
        {"--layers", a->layers, &m->layers},
        {"--experts", a->experts, &m->experts},
        {"--top-k", a->top_k, &m->top_k},
        {"--moe-intermediate", a->moe_intermediate, &m->moe_intermediate},
        {"--heads", a->heads, &m->heads},
        {"--kv-heads", a->kv_heads, &m->kv_heads},
        {"--head-dim", a->head_dim, &m->head_dim},
        {"--vocab", a->vocabulary, &m->vocabulary},
        {"--group", a->group, &m->group},
    };
    struct xm_error err = {0};
    for (size_t i = 0; i < XM_ARRAY_LEN(numbers); i++) {
        if (numbers[i].value > 1u << 20)
            return xm_cli_usage("%s is %" PRIu64 ", at most %u", numbers[i].name,
                                numbers[i].value, 1u << 20);
        *numbers[i].out = (uint32_t)numbers[i].value;
    }
    if (strcmp(a->arch, "qwen3moe") != 0)
        return xm_cli_usage("--arch is '%s', expected qwen3moe", a->arch);
    if (strcmp(a->form, "exporter") != 0 && strcmp(a->form, "r1") != 0)
        return xm_cli_usage("--form is '%s', expected exporter or r1", a->form);
    m->r1 = strcmp(a->form, "r1") == 0;
    m->weights = xm_element_parse(a->weights);
    m->seed = a->seed;
    m->blank = a->blank;
    if (m->weights == XM_ELEMENT_COUNT)
        return xm_cli_usage("--weights is '%s', expected u4, i4, u8, i8 or f16",
                            a->weights);
    return xm_synthetic_check(m, &err) == XM_OK ? XM_EXIT_OK
                                                : xm_cli_usage("%s", err.text);
}

/* Whether an entry does not make its folder a used one: the folder itself and its parent, and
 * files that an earlier run has left when it was stopped. */
static bool
is_leftover(const char *name)
{
    const size_t n = strlen(name), end = sizeof(XM_SYNTHETIC_PART) - 1;
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
           (n > end && strcmp(name + n - end, XM_SYNTHETIC_PART) == 0);
}

/* A model of hundreds of gigabytes may lie where somebody mistypes a folder. */
static int
check_folder(const struct args *a)
{
    if (!a->folder)
        return xm_cli_usage("where to? Give -o DIR");
    DIR *folder = a->force ? NULL : opendir(a->folder);
    const struct dirent *entry = folder ? readdir(folder) : NULL;
    while (entry && is_leftover(entry->d_name))
        entry = readdir(folder);
    int code = XM_EXIT_OK;
    if (entry)
        code = xm_cli_usage("the folder %s is not empty: choose another, or give --force "
                            "to replace a model in it",
                            a->folder);
    if (folder)
        closedir(folder);
    return code;
}

/* Where standard error is no terminal, one line has to do: large models take minutes. */
struct progress {
    const char *folder;
    bool blank, told;
};

static void
show_progress(uint64_t done, uint64_t all, void *ctx)
{
    struct progress *p = ctx;
    if (!p->told && !p->blank)
        fprintf(stderr, "writing about %" PRIu64 " MiB to %s\n", all >> 20, p->folder);
    p->told = true;
    xm_progress_show("writing %" PRIu64 " of about %" PRIu64 " MiB", done >> 20,
                     all >> 20);
}

int
xm_cli_make_model(int argc, char **argv)
{
    static const struct xm_cli_spec spec = {
        .usage = "xemoe make-model -o DIR [options]",
        .about =
            "Writes a synthetic Mixture-of-Experts model as OpenVINO IR, with random "
            "weights\n"
            "and a tokenizer for which each byte of a text is a token. Memory does not "
            "grow with\n"
            "the model.\n",
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
    code = fill(&a, &m);
    if (code == XM_EXIT_OK)
        code = check_folder(&a);
    if (code != XM_EXIT_OK)
        return code;
    struct progress progress = {.folder = a.folder, .blank = a.blank};
    enum xm_status s = xm_synthetic_write(&m, a.folder, show_progress, &progress, &err);
    xm_progress_clear();
    if (s != XM_OK)
        return xm_cli_failed(&err);
    printf("%s: about %" PRIu64 " MiB of weights\n", a.folder,
           xm_synthetic_bytes(&m) >> 20);
    return xm_cli_flush();
}
