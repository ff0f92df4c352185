/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of xemoe bench.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugin/cli/bench_parts.h"

/* clang-format off */
#define FORMATS "md csv json jsonl sql none"
#define AT(member) offsetof(struct xm_bench_args, member)
static const struct xm_cli_option options[] = {
    XM_CLI_GROUP("Kernels alone", "xemoe bench --kernels --filter moe"),
    { 0,   "kernels",      XM_CLI_FLAG,  AT(kernels),         NULL,    "measure the kernels of single steps instead of models; it has its own options: xemoe bench --kernels --help" },
    { 0,   "sampling",     XM_CLI_FLAG,  AT(sampling),        NULL,    "measure the choice of tokens instead of models; it has its own options: xemoe bench --sampling --help" },
    XM_CLI_GROUP("The models and devices", "xemoe bench a.gguf b.gguf --device GPU"),
    { 'm', "model",        XM_CLI_TEXTS, AT(model_texts),     "PATHS", ".gguf files, .xml files, folders with one of them, or files of 'xemoe compile'" },
    { 0,   "device",       XM_CLI_TEXTS, AT(device_texts),    "NAMES", "GPU (default), GPU.1, CPU, REFERENCE (-dev); GPU.0/GPU.1: both devices share one model", NULL, "GPU CPU REFERENCE" },
    XM_CLI_GROUP("The tests", "xemoe bench model.gguf -p 512,2048 -n 0 -d 0,4096 -r 3"),
    { 'p', "n-prompt",     XM_CLI_TEXTS, AT(prompt_texts),    "LIST",  "prompt tests: tokens of the prompt (512); 0: no such test" },
    { 'n', "n-gen",        XM_CLI_TEXTS, AT(gen_texts),       "LIST",  "decode tests: tokens that are decoded one by one (128); 0: no such test" },
    { 0,   "parallel",     XM_CLI_TEXTS, AT(parallel_texts),  "LIST",  "in decode tests, texts that decode together, each with its own tokens (1; -np)" },
    { 0,   "prompt-gen",   XM_CLI_TEXTS, AT(pair_texts),      "P,N",   "a test that reads P prompt tokens, then decodes N (-pg)" },
    { 'd', "n-depth",      XM_CLI_TEXTS, AT(depth_texts),     "LIST",  "tokens in the KV cache before a test, which are not timed (0)" },
    { 'b', "batch-size",   XM_CLI_TEXTS, AT(batch_texts),     "LIST",  "prompt tokens that are submitted at once (2048)" },
    { 0,   "ubatch-size",  XM_CLI_TEXTS, AT(ubatch_texts),    "LIST",  "most prompt tokens in one chunk, which runs through the model at once (512; -ub)", "ubatch" },
    { 0,   "cache-type-k", XM_CLI_TEXTS, AT(type_k_texts),    "LIST",  "element types of cached keys: f32, f16, i8 (q8_0), u4 (q4_0); default: chosen for the device (-ctk)", NULL, XM_CLI_CACHE_TYPES },
    { 0,   "cache-type-v", XM_CLI_TEXTS, AT(type_v_texts),    "LIST",  "element types of cached values (-ctv)", NULL, XM_CLI_CACHE_TYPES },
    { 'r', "repetitions",  XM_CLI_COUNT, AT(reps),            "N",     "runs of each test (5)" },
    { 0,   "no-warmup",    XM_CLI_FLAG,  AT(no_warmup),       NULL,    "do not run each test once before it is timed" },
    { 0,   "delay",        XM_CLI_WHOLE, AT(delay),           "S",     "seconds to wait before each test, so that the device cools (0)" },
    XM_CLI_GROUP("Output", "xemoe bench model.gguf -o json --progress"),
    { 'o', "output",       XM_CLI_WORD,  AT(format_name),     "FORM",  "format of standard output: md (default), csv, json, jsonl, sql, none", NULL, FORMATS },
    { 0,   "output-err",   XM_CLI_WORD,  AT(format_err_name), "FORM",  "format of standard error (none; -oe)", NULL, FORMATS },
    { 0,   "progress",     XM_CLI_FLAG,  AT(progress),        NULL,    "show each run on standard error" },
};
#undef AT
/* clang-format on */

enum { N_PROMPT = 512, N_GEN = 128, REPETITIONS = 5 }; /* defaults */

/* Copies the common options, except those that the table above has under llama-bench's names. */
static size_t
common_options(struct xm_cli_option out[XM_CLI_N_TARGET_OPTIONS])
{
    static const char *const kept[] = {"precision",    "dynamic-quantization",
                                       "kv-memory",    "offload",
                                       "expert-cache", "weights",
                                       "cache-dir",    "no-tune",
                                       "split",        "messages"};
    static const struct xm_cli_option group =
        XM_CLI_GROUP("How the models run", "xemoe bench model.gguf --precision f16");
    static const struct xm_cli_option tune = XM_CLI_TUNE_ROW;
    size_t n = 0;
    out[n++] = group; /* fits, with --tune, in place of the omitted options */
    for (size_t i = 0; i < XM_CLI_N_TARGET_OPTIONS; i++) {
        for (size_t k = 0; k < XM_ARRAY_LEN(kept); k++) {
            if (xm_cli_target_options[i].name &&
                strcmp(xm_cli_target_options[i].name, kept[k]) == 0)
                out[n++] = xm_cli_target_options[i];
        }
    }
    out[n++] = tune;
    return n;
}

/* ---- texts to values --------------------------------------------------------------- */

static bool
is_path(const char *text)
{
    return access(text, F_OK) == 0;
}

/* Reads numbers; without any texts the value is `fallback`. */
static enum xm_status
read_numbers(const char *option, const struct xm_cli_texts *texts, uint64_t least,
             uint64_t fallback, struct xm_bench_values *out, struct xm_error *err)
{
    XM_TRY(xm_bench_values_read(option, texts, least, out, err));
    if (texts->n == 0)
        out->list[out->n++] = fallback;
    return XM_OK;
}

static enum xm_status
read_pairs(struct xm_bench_args *a, struct xm_error *err)
{
    for (size_t i = 0; i < a->pair_texts.n; i++) {
        const struct xm_cli_texts one = {.list = {a->pair_texts.list[i]}, .n = 1};
        const size_t before = a->pairs.n;
        XM_TRY(xm_bench_values_read("-pg", &one, 0, &a->pairs, err));
        if (a->pairs.n != before + 2)
            return xm_fail(err, XM_INVALID,
                           "option -pg takes two numbers, of prompt tokens and of "
                           "decoded tokens, as 512,128; found '%.40s'",
                           one.list[0]);
    }
    return XM_OK;
}

/* Reads element types; accepts xemoe's and llama-bench's names. */
static enum xm_status
read_types(const char *option, const struct xm_cli_texts *texts,
           struct xm_bench_texts *out, struct xm_error *err)
{
    XM_TRY(xm_bench_texts_read(option, texts, NULL, out, err));
    for (size_t i = 0; i < out->n; i++)
        if (!xm_list_has(XM_CLI_CACHE_TYPES, ' ', out->list[i], strlen(out->list[i])))
            return xm_fail(err, XM_INVALID, "option %s takes one of %s, found '%.40s'",
                           option, XM_CLI_CACHE_TYPES, out->list[i]);
    return XM_OK;
}

static enum xm_status
read_format(const char *option, const char *name, enum xm_bench_format *out,
            struct xm_error *err)
{
    if (!name || xm_bench_format_find(name, out))
        return XM_OK;
    return xm_fail(err, XM_INVALID,
                   "option %s takes md, csv, json, jsonl, sql or none, found '%.40s'",
                   option, name);
}

static bool
has_test(const struct xm_bench_args *a)
{
    const struct xm_bench_values *const lists[] = {&a->prompts, &a->gens, &a->pairs};
    for (size_t k = 0; k < XM_ARRAY_LEN(lists); k++) {
        for (size_t i = 0; i < lists[k]->n; i++) {
            if (lists[k]->list[i])
                return true;
        }
    }
    return false;
}

static bool
is_mesh(const char *text)
{
    return strncmp(text, "MESH:", 5) == 0;
}

/* Converts llama-bench's A/B, one model on both devices, to the core's A,B, because here a comma
 * separates devices. */
static void
name_meshes(struct xm_bench_texts *devices)
{
    for (size_t i = 0; i < devices->n; i++) {
        for (char *at = devices->list[i]; (at = strchr(at, '/')) != NULL; at++)
            *at = ',';
    }
}

static enum xm_status
read_values(struct xm_bench_args *a, struct xm_error *err)
{
    XM_TRY(xm_bench_texts_read("-m", &a->model_texts, is_path, &a->models, err));
    XM_TRY(xm_bench_texts_read("-dev", &a->device_texts, is_mesh, &a->devices, err));
    name_meshes(&a->devices);
    XM_TRY(read_numbers("-p", &a->prompt_texts, 0, N_PROMPT, &a->prompts, err));
    XM_TRY(read_numbers("-n", &a->gen_texts, 0, N_GEN, &a->gens, err));
    XM_TRY(read_numbers("-np", &a->parallel_texts, 1, 1, &a->parallels, err));
    XM_TRY(read_numbers("-d", &a->depth_texts, 0, 0, &a->depths, err));
    XM_TRY(read_numbers("-b", &a->batch_texts, 1, XM_BENCH_N_BATCH, &a->batches, err));
    XM_TRY(
        read_numbers("-ub", &a->ubatch_texts, 1, XM_BENCH_N_UBATCH, &a->ubatches, err));
    XM_TRY(read_pairs(a, err));
    XM_TRY(read_types("-ctk", &a->type_k_texts, &a->types_k, err));
    XM_TRY(read_types("-ctv", &a->type_v_texts, &a->types_v, err));
    XM_TRY(read_format("-o", a->format_name, &a->format, err));
    XM_TRY(read_format("-oe", a->format_err_name, &a->format_err, err));
    if (!has_test(a))
        return xm_fail(err, XM_INVALID,
                       "there is nothing to run: -p and -n are 0, and there is no -pg");
    return XM_OK;
}

/* Refuses values of the common options and of -ub that no device accepts. */
static int
check_settings(const struct xm_bench_args *a)
{
    int code = xm_cli_check_target(&a->target);
    for (size_t i = 0; i < a->ubatches.n && code == XM_EXIT_OK; i++) {
        char text[XM_CLI_NUMBER];
        snprintf(text, sizeof(text), "%" PRIu64, a->ubatches.list[i]);
        const struct xm_cli_setting setting = {"-ub", "XM_UBATCH", text};
        code = xm_cli_check_settings(&setting, 1);
    }
    return code;
}

static int
check(struct xm_bench_args *a)
{
    struct xm_error err = {0};
    a->target.tunes = true;
    const int code = xm_bench_rules_check(a);
    if (code != XM_EXIT_OK)
        return code;
    const enum xm_status s = read_values(a, &err);
    if (s == XM_OK)
        return check_settings(a);
    return s == XM_INVALID ? xm_cli_usage("%s", err.text) : xm_cli_failed(&err);
}

static int
parse(int argc, char **argv, struct xm_bench_args *a, bool *done)
{
    struct xm_cli_option own[XM_ARRAY_LEN(options) + XM_BENCH_MOST_RULES];
    struct xm_cli_option common[XM_CLI_N_TARGET_OPTIONS];
    memcpy(own, options, sizeof(options));
    const struct xm_cli_spec spec = {
        .usage = "xemoe bench MODEL… [-p LIST] [-n LIST] [-d LIST] [options]",
        .about =
            "Measures tokens per second, as llama-bench does: ppN is a prompt of N "
            "random\ntokens, tgN are N tokens that are decoded one by one, @ dD means "
            "after D cached\ntokens. Neither tokenizer nor sampling is included. A LIST "
            "is 512, 1,2,4 or a\nrange 1-8, 1-8+2, 1-8*2; options may be repeated; every "
            "combination is run.\nEach test runs once before the timed runs.\n",
        .common = common,
        .n_common = common_options(common),
        .own = own,
        .n_own =
            XM_ARRAY_LEN(options) + xm_bench_rules_options(own + XM_ARRAY_LEN(options)),
        XM_CLI_MODEL(offsetof(struct xm_bench_args, model_texts)),
        .operands_are_many = true,
    };
    return xm_cli_begin(&spec, argc, argv, a, done);
}

int
xm_bench_args_read(int argc, char **argv, struct xm_bench_args *a, bool *done)
{
    static const struct xm_error no_memory = {XM_NO_MEMORY,
                                              "out of memory for the command line"};
    *a = (struct xm_bench_args){.reps = REPETITIONS, .format = XM_BENCH_MD};
    *done = true;
    char **words = xm_bench_rules_long_names(argc, argv);
    if (!words)
        return xm_cli_failed(&no_memory);
    int code = parse(argc, words, a, done);
    xm_free(words); /* only the array: the words belong to argv */
    if (*done)
        return code;
    code = check(a);
    *done = code != XM_EXIT_OK;
    return code;
}

void
xm_bench_args_free(struct xm_bench_args *a)
{
    xm_bench_texts_free(&a->models);
    xm_bench_texts_free(&a->devices);
    xm_bench_texts_free(&a->types_k);
    xm_bench_texts_free(&a->types_v);
}
