/* SPDX-License-Identifier: Apache-2.0
 *
 * The program `xemoe`: functions and options that its subcommands share.
 *
 * A subcommand is a file with one of the functions listed at the end; commands.c has the table of
 * subcommands. Functions here that return int return an exit code (exit_codes.h). If it is not 0,
 * they have printed "xemoe: " and one sentence with the reason on standard error.
 */
#ifndef XM_PLUGIN_CLI_CLI_H
#define XM_PLUGIN_CLI_CLI_H

#include "plugin/pipeline/package.h"
#include "plugin/plugin.h"
#include "plugin/program_util/command_line.h"
#include "plugin/program_util/exit_codes.h"
#include "plugin/program_util/interrupt.h"
#include "plugin/program_util/json_out.h"
#include "plugin/text/token_list.h"

/* Prints err's sentence, with names of properties replaced by the command's options, and then
 * `more`. */
void xm_cli_print_failure(const struct xm_error *err, const char *more);
/* Prints err's sentence with advice, or that Ctrl-C was pressed. Returns the status's exit code. */
int xm_cli_failed(const struct xm_error *err);
/* Returns whether a line of n bytes, from which "xemoe: " was removed, is advice that xm_cli_failed
 * prints below an error's sentence. */
bool xm_cli_is_advice(const char *line, size_t n);
/* As xm_cli_failed, for a failure of xm_core_find; returns XM_EXIT_DEVICE. `name` was given to
 * `option`; NULL: no device was given. */
int xm_cli_no_device(const char *option, const char *name, const struct xm_error *err);
/* Replaces this process by the program `name`, which is installed with xemoe, with these arguments;
 * returns only on failure. */
int xm_cli_start_program(const char *name, char **argv);
/* Finds the path of such a program. Returns false: it is not installed, or memory is missing. */
bool xm_cli_find_program(const char *name, struct xm_strbuf *path);
/* From now on the first Ctrl-C cancels `r`, until xm_cli_release_interrupt or _note_. */
void xm_cli_catch_interrupt(struct xm_infer *r);

/* Parses argv into *out. *done: the command must end with the returned code, because help was
 * printed or the command line is wrong. */
int xm_cli_begin(const struct xm_cli_spec *spec, int argc, char **argv, void *out,
                 bool *done);

/* Refuses `out`, the value of XM_CLI_NPY_ROW, if it would write bytes to a terminal. */
int xm_cli_check_npy(const char *out);

/* For generating documents: from now on xm_cli_begin passes each command's table of options to `fn`
 * and ends the command. NULL: back to normal. */
typedef void (*xm_cli_collect_fn)(const struct xm_cli_spec *spec, void *ctx);
void xm_cli_collect(xm_cli_collect_fn fn, void *ctx);

/* ---- a model on a device ----------------------------------------------------------- */

struct xm_cli_model;

/* Options of all commands that run a model. First member of their structs. */
struct xm_cli_target {
    const char *model, *device, *precision, *kv, *offload, *expert_cache, *weights,
        *cache_dir;
    const char *kv_memory, *key_cache, *value_cache, *quantisation, *split, *messages;
    uint64_t ubatch;
    bool json, tune, no_tune;

    /* The members below are no options; the command sets them. */
    bool measures; /* PERF_COUNT: measures device times of steps */
    bool tunes;    /* kernels may be measured beside the model (tuner_process.h) */
    /* CACHE_MODE: exported models refer to the files of the weights instead of including them */
    bool refers;
    /* Whether the model is compiled for an xm_embedder (m->gives_hidden): never; only if its file
     * returns hidden states instead of logits; always. */
    enum { XM_CLI_NO_EMBEDDINGS, XM_CLI_EMBEDS_IF_IT_MUST, XM_CLI_EMBEDS } embeds;
    /* activations keep 16 bits unless --dynamic-quantization is given, because the command compares
     * logits with those of f32 */
    bool is_exact;
    /* Runs one generation while the model opens, on drivers that compile kernels at their first
     * launch. TOKEN and PROMPT: only when kernels had to be built and a progress line is shown. */
    enum {
        XM_CLI_NO_WARM_UP,
        XM_CLI_WARM_UP_TOKEN,  /* one decoded token                        */
        XM_CLI_WARM_UP_PROMPT, /* a prompt and one decoded token           */
        XM_CLI_WARM_UP_ALWAYS  /* as PROMPT, in any case */
    } warm_up;
    const char *numerics; /* XM_NUMERICS; NULL: the environment variable's value */
    /* If the model has no tokenizer, opening it fails with this advice before compiling; NULL: the
     * command needs no tokenizer. */
    const char *needs_tokenizer;
    /* the file of --chat-template; NULL: not given */
    const char *chat_template;
    bool needs_chat_template; /* read the chat template before anything is compiled */
    /* Called with the model's package and vocabulary before compiling. If it returns another exit
     * code than XM_EXIT_OK, opening ends with that code. NULL: nothing to check. */
    int (*check)(const struct xm_cli_model *m, const void *ctx);
    const void *check_ctx;
};
/* needs_tokenizer for commands whose prompt is text. */
#define XM_CLI_IDS_INSTEAD "give token ids with --ids, or put the file beside the model"
/* Element types of the KV cache, and other names for them. */
#define XM_CLI_CACHE_TYPES "f32 f16 i8 u8 q8_0 u4 i4 q4_0"
#define XM_CLI_WEIGHT_WAYS "map copy auto"
#define XM_CLI_SPLITS      "auto tensor expert layer"
enum { XM_CLI_N_TARGET_OPTIONS = 18 };
/* clang-format off */
#define XM_CLI_TARGET(member) offsetof(struct xm_cli_target, member)
/* Rows for --kv and the options for keys or values alone; AT: offset of a member. */
#define XM_CLI_CACHE_ROWS(AT) \
    { 0,   "kv",        XM_CLI_CHOICE, AT(kv),        "TYPE", "element type of the KV cache: u4 (i4 and llama.cpp's q4_0 mean the same), i8 (also u8 and q8_0), f16 or f32; default: chosen for the device", NULL, XM_CLI_CACHE_TYPES }, \
    { 0,   "cache-type-k", XM_CLI_CHOICE, AT(key_cache), "TYPE", "element type of cached keys, as in --kv; default: --kv", "-ctk", XM_CLI_CACHE_TYPES }, \
    { 0,   "cache-type-v", XM_CLI_CHOICE, AT(value_cache), "TYPE", "element type of cached values, as in --kv; default: --kv", "-ctv", XM_CLI_CACHE_TYPES }
/* Rows shared by the common options, plan and tune. */
#define XM_CLI_PRECISION_ROW(AT) \
    { 0,   "precision", XM_CLI_CHOICE, AT(precision), "TYPE", "element type of activations: f16 or f32; default: chosen for the device. There is no bf16, because no kernel computes in it", NULL, "f16 f32" }
#define XM_CLI_MESSAGES_ROW(AT) \
    { 0,   "messages",  XM_CLI_CHOICE, AT(messages), "TYPE", "element type of the partial sums that several devices exchange: f32 (default), or f16, which halves the bytes and rounds", NULL, "f32 f16" }
#define XM_CLI_EXPERT_CACHE_ROW(AT) \
    { 0,   "expert-cache", XM_CLI_WORD, AT(expert_cache), "MIB", "device memory that caches recently used experts whose weights stay in host memory; default: the memory that the model leaves free" }
#define XM_CLI_KV_MEMORY_ROW(AT) \
    { 0,   "kv-memory", XM_CLI_WORD,  AT(kv_memory), "MIB",  "most memory of the KV cache; 0 (default): the memory that the model leaves free" }
#define XM_CLI_WEIGHTS_ROW(AT) \
    { 0,   "weights", XM_CLI_CHOICE, AT(weights), "WAY", "where weights are read. map: in the mapped file, if the device can; copy: in memory of the device; auto (default): chosen for the device", NULL, XM_CLI_WEIGHT_WAYS }
#define XM_CLI_QUANTISATION_ROW(AT) \
    { 0,   "dynamic-quantization", XM_CLI_CHOICE, AT(quantisation), "N", "columns of activations that share one scale where a processor quantises activations to 8 bits: 32 or 128; 0: quantise to 16 bits; default: 32 if the processor has AVX2 and activations are f16, 128 for Q2_K to Q6_K unless it has AVX-512 without VNNI, but 0 in logits and verify", NULL, "0 32 128" }
/* The help of --device; `others`: the devices that are not GPUs. */
#define XM_CLI_DEVICES(others) \
    "GPU (default), GPU.1, " others "; 'xemoe devices' lists them; several names, separated by commas, share the model, in the proportions in parentheses if these are given: MESH:GPU.0,GPU.1(0.7,0.3)"
#define XM_CLI_TARGET_ROWS \
    XM_CLI_GROUP("The model and its device", "-d GPU --kv u4 --ubatch 256"), \
    { 'm', "model",     XM_CLI_TEXT,  XM_CLI_TARGET(model),     "PATH", "a .gguf file, an .xml file, or a folder with one of them; the first word without an option means the same; generate, chat, serve and bench also accept a file of 'xemoe compile'; default: $XM_MODEL" }, \
    { 'd', "device",    XM_CLI_WORD,  XM_CLI_TARGET(device),    "NAME", XM_CLI_DEVICES("CPU, REFERENCE"), "-dev", "GPU CPU REFERENCE" }, \
    { 0,   "split",     XM_CLI_CHOICE, XM_CLI_TARGET(split),    "WHAT", "how several devices share a model. auto (default): weights are split where this saves more time than the exchange of results costs; tensor: every weight that can be split, experts by their width; expert: the same, but each device has some of the experts as a whole; layer: each device has some of the layers, which run one after the other", NULL, XM_CLI_SPLITS }, \
    XM_CLI_MESSAGES_ROW(XM_CLI_TARGET), \
    XM_CLI_PRECISION_ROW(XM_CLI_TARGET), \
    XM_CLI_QUANTISATION_ROW(XM_CLI_TARGET), \
    { 0,   "ubatch",    XM_CLI_COUNT, XM_CLI_TARGET(ubatch),    "N",    "most prompt tokens in one chunk, which runs through the model at once (512)", "ubatch-size -ub" }, \
    XM_CLI_CACHE_ROWS(XM_CLI_TARGET), \
    XM_CLI_KV_MEMORY_ROW(XM_CLI_TARGET), \
    { 0,   "offload",   XM_CLI_WORD,  XM_CLI_TARGET(offload),   "N",    "percentage of the experts that stays in host memory; default: as much as does not fit on the device" }, \
    XM_CLI_EXPERT_CACHE_ROW(XM_CLI_TARGET), \
    XM_CLI_WEIGHTS_ROW(XM_CLI_TARGET), \
    { 0,   "cache-dir", XM_CLI_WORD,  XM_CLI_TARGET(cache_dir), "DIR",  "folder where compiled kernels are kept; none: keep none; default: ~/.cache/xemoe" }, \
    { 0,   "no-tune",   XM_CLI_FLAG,  XM_CLI_TARGET(no_tune),   NULL,   "measure no kernels, and use the default kernels instead of those that were measured to be the fastest" }, \
    { 0,   "json",      XM_CLI_FLAG,  XM_CLI_TARGET(json),      NULL,   "print the result as one JSON object" }
/* Row for commands that compute embeddings; AT: offset of a const char *. */
#define XM_CLI_POOLING_ROW(AT) \
    { 0,   "pooling",   XM_CLI_CHOICE, AT, "HOW", "which hidden states become the embedding of a text: last (that of the last token) or mean (the mean over all tokens); default: what the model's files say, else last", NULL, XM_POOLINGS }
/* Row for commands whose result is an array of numbers; `without`: what is printed without -o. */
#define XM_CLI_NPY_ROW(AT, without) \
    { 'o', "out",       XM_CLI_WORD,  AT, "FILE", "the .npy file to write; -: standard output; default: print " without, "output" }
/* Row for commands that measure kernels beside their model (tuner_process.h). */
#define XM_CLI_TUNE_ROW \
    { 0,   "tune",      XM_CLI_FLAG,  XM_CLI_TARGET(tune),      NULL,   "measure kernels that have not been measured on this device yet, for at most 2 s; building them takes longer; default: on a GPU, if progress lines are shown" }
/* clang-format on */
/* Members of a command's xm_cli_spec: MODEL as a word, with -m, or from the environment. */
#define XM_CLI_MODEL(offset)                                                             \
    .operand = "MODEL", .operand_offset = (offset), .operand_env = "XM_MODEL"
extern const struct xm_cli_option xm_cli_target_options[XM_CLI_N_TARGET_OPTIONS];
/* Members of the xm_cli_spec of a command that runs one model: MODEL, the options of a target, and
 * the command's own. */
#define XM_CLI_TARGET_AND(options)                                                       \
    XM_CLI_MODEL(XM_CLI_TARGET(model)), .common = xm_cli_target_options,                 \
                                        .n_common = XM_CLI_N_TARGET_OPTIONS,             \
                                        .own = (options), .n_own = XM_ARRAY_LEN(options)

/* An option that sets a property. */
struct xm_cli_setting {
    const char *option, *key;
    const char *value; /* NULL: not given */
};
enum { XM_CLI_NUMBER = 24 }; /* maximum number of characters of a number */
/* XM_COPY_WEIGHTS for a word of --weights; NULL for NULL. */
const char *xm_cli_copy_weights(const char *way);
/* MODEL_DISTRIBUTION_POLICY for a word of XM_CLI_SPLITS; NULL: not set. */
const char *xm_cli_split_policy(const char *split);
/* XM_EXIT_USAGE: a value that no device accepts for its property. */
int xm_cli_check_settings(const struct xm_cli_setting *settings, size_t n);
/* As xm_cli_check_settings, for all options of a target except --cache-dir. */
int xm_cli_check_target(const struct xm_cli_target *t);

/* Sets the options of a target in a config, for planning. */
enum xm_status xm_cli_target_config(const struct xm_cli_target *t, struct xm_config *c,
                                    struct xm_error *err);

/* Checks that the devices of a mesh exist which this process uses; in an MPI job this is one of
 * them. Checks no other names. */
int xm_cli_check_ranks(const struct xm_core *core, const char *device);
/* XM_EXIT_USAGE if `device` is REFERENCE, which `option` cannot be used with because it `why`. */
int xm_cli_refuse_reference(const char *device, const char *option, const char *why);
/* Removes REFERENCE from the help and the values of --device, for commands that refuse it. */
void xm_cli_leave_out_reference(struct xm_cli_option *options, size_t n);
/* Warns, once, if --split is given for a single device. */
void xm_cli_check_split(const char *split, const char *device);

struct xm_cli_model {
    struct xm_core *core;
    struct xm_compiled *compiled;
    /* tokenizer and generation defaults have been read; the chat template only if it is needed */
    struct xm_package *package;
    struct xm_cli_tuner *tuner; /* measures kernels; NULL: nothing to measure */
    bool gives_hidden;          /* `compiled` returns hidden states for an xm_embedder */
    uint64_t vocabulary;        /* 0: the last dimension of the compiled model's logits */
    double load_s;              /* seconds that opening took              */
    double load_peak_rss;       /* peak resident memory after that, MiB   */
};

/* The number of token ids; UINT64_MAX: the model's file does not say it. */
uint64_t xm_cli_vocabulary(const struct xm_cli_model *m);
/* As xm_package_open, with helpful sentences if the path is a URL, or a folder with models below it
 * ('xemoe list'). */
enum xm_status xm_cli_open_package(const char *path, struct xm_package **out,
                                   struct xm_error *err);
/* Reads and compiles the model; on failure everything is closed again. */
int xm_cli_model_open(struct xm_cli_model *m, const struct xm_cli_target *t,
                      const struct xm_compile_options *options);
void xm_cli_model_close(struct xm_cli_model *m);
/* Compiles the opened model again, so that it returns hidden states. Shows no progress. Any thread
 * may call it. */
enum xm_status xm_cli_compile_hidden(const struct xm_cli_model *m,
                                     const struct xm_cli_target *t,
                                     struct xm_compiled **out, struct xm_error *err);
/* Prefixes the error of a chat template with the file that has the template. */
void xm_cli_name_template(const struct xm_cli_model *m, const struct xm_cli_target *t,
                          struct xm_error *err);
/* Returns the pooling for a word of --pooling; NULL: that of the model's files. */
enum xm_status xm_cli_pooling(struct xm_package *p, const char *given,
                              enum xm_pooling *out, struct xm_error *err);
/* The stored value of --context 0 (rows of kind XM_CLI_BOUND): as in llama.cpp, the context that
 * the model was trained for. */
#define XM_CLI_TRAINED_CONTEXT UINT64_MAX
/* Returns the value of --context in tokens; `trained`: the model's trained context, 0: not known.
 * Returns 0 if it is not given, or if the trained context is requested but not known. */
uint64_t xm_cli_context(uint64_t given, uint64_t trained);
/* Checks the value of --context. XM_INVALID: more positions than any model has. */
enum xm_status xm_cli_check_context(uint64_t positions, struct xm_error *err);
/* Whether `positions` exceeds the `trained` context (0: not known); if so, fills in `warning`. */
enum { XM_CLI_WARNING = 192 };
bool xm_cli_beyond_training(uint64_t positions, uint64_t trained,
                            char warning[XM_CLI_WARNING]);
struct xm_token_runner;
/* The logits [wanted][*vocabulary] of the last `wanted` tokens that were fed, valid until the next
 * run. NULL: the model returns fewer rows; err has a sentence. */
const float *xm_cli_logits_of(const struct xm_token_runner *r, uint64_t wanted,
                              uint64_t *vocabulary, struct xm_error *err);
/* Appends "GPU: <name of the chip>". */
void xm_cli_model_device(const struct xm_cli_model *m, struct xm_strbuf *out);

/* Adds {"cl_mem": {"now": …, "peak": …, "buffers": …}, …} to the object `o` of the result. */
void xm_cli_add_memory_kinds(struct xm_json_out *j, yyjson_mut_val *o,
                             const struct xm_memory_stats *s);

/* ---- token ids on the command line ------------------------------------------------- */

/* A list of rows. Zero-initialise. */
struct xm_cli_ids {
    struct xm_token_list *rows; /* owned */
    size_t n;
};

/* Reads token ids from "1,2,3", or from a file: "@FILE" holds integers separated by spaces, commas
 * or newlines, or is an .npy file, of which "@FILE:R" is row R and "@FILE" all rows. Each id must
 * be below `vocabulary`, and each row must have at least one. */
int xm_cli_ids_read(const char *arg, uint64_t vocabulary, struct xm_cli_ids *out);
/* As xm_cli_ids_read, for a single row. */
int xm_cli_ids_read_row(const char *arg, uint64_t vocabulary, struct xm_token_list *out);
void xm_cli_ids_free(struct xm_cli_ids *ids);
/* Checks, before the model is read, that the ids can be read; the vocabulary is not known yet. */
int xm_cli_ids_check(const char *arg, bool one_row);
/* The `check` of a target whose check_ctx is the value of --ids; NULL: nothing to check. */
int xm_cli_ids_check_vocabulary(const struct xm_cli_model *m, const void *arg);

/* Gets the prompt's token ids for generate and verify: from `ids`, or, if NULL, from `text` (n
 * bytes). */
int xm_cli_prompt(const struct xm_cli_model *m, const char *ids, const char *text,
                  size_t n, struct xm_token_list *out);

/* ---- the subcommands --------------------------------------------------------------- */

int xm_cli_devices(int argc, char **argv);
int xm_cli_info(int argc, char **argv);
int xm_cli_list(int argc, char **argv);
int xm_cli_plan(int argc, char **argv);
int xm_cli_compile(int argc, char **argv);
int xm_cli_generate(int argc, char **argv);
int xm_cli_embed(int argc, char **argv);
int xm_cli_logits(int argc, char **argv);
int xm_cli_perplexity(int argc, char **argv);
int xm_cli_verify(int argc, char **argv);
int xm_cli_opt(int argc, char **argv);
int xm_cli_make_model(int argc, char **argv);
int xm_cli_chat(int argc, char **argv);
int xm_cli_serve(int argc, char **argv);
int xm_cli_bench(int argc, char **argv);
int xm_cli_tune(int argc, char **argv);
int xm_cli_selftest(int argc, char **argv);
int xm_cli_benchmark_app(int argc, char **argv);

#endif
