/* SPDX-License-Identifier: Apache-2.0
 *
 * The program `xemoe`: what its subcommands share.
 *
 * A subcommand is one file with one function; main.c has the table of them. Functions here that
 * return int return an exit code; whenever it is not 0 the reason is already on standard error,
 * as one sentence behind "xemoe: ".
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

/* Prints the sentence of a failure, with the command's options for the properties in it, and
 * returns the exit code of its status. */
int xm_cli_failed(const struct xm_error *err);
/* The same for xm_core_find: a name that was given and is no device's is a mistake of the command
 * line, XM_EXIT_USAGE; what the computer lacks is XM_EXIT_DEVICE. `name` NULL: none was given. */
int xm_cli_no_device(const char *option, const char *name, const struct xm_error *err);
/* From now on the first Ctrl-C cancels `r`, until xm_cli_release_interrupt or _note_. */
void xm_cli_catch_interrupt(struct xm_infer *r);

/* Parses argv; *done: the command ends here with the returned code (help, or bad usage). */
int xm_cli_begin(const struct xm_cli_spec *spec, int argc, char **argv, void *out,
                 bool *done);

/* From now on xm_cli_begin hands each command's table to `fn`, and the command ends there; NULL: no
 * more. */
typedef void (*xm_cli_collect_fn)(const struct xm_cli_spec *spec, void *ctx);
void xm_cli_collect(xm_cli_collect_fn fn, void *ctx);

/* ---- a model on a device ----------------------------------------------------------- */

/* Options of all commands that run a model. First member of their structs. */
struct xm_cli_target {
    const char *model, *device, *precision, *kv, *offload, *expert_cache, *cache_dir;
    const char *kv_memory, *key_cache, *value_cache;
    uint64_t ubatch;
    bool json;
    bool measures; /* not an option: steps are measured (PERF_COUNT) */
    /* nor this: what is exported refers to the weights' files (CACHE_MODE) */
    bool refers;
    /* Nor this: what of text generation is built before the model is open, where the driver
     * compiles at launches: for a person who waits, and only where kernels were built anew; or in
     * any case. */
    enum {
        XM_CLI_NO_WARM_UP,
        XM_CLI_WARM_UP_TOKEN,  /* a decoded token                          */
        XM_CLI_WARM_UP_PROMPT, /* that behind a prompt                     */
        XM_CLI_WARM_UP_ALWAYS
    } warm_up;
    const char *numerics; /* not an option: XM_NUMERICS; NULL: the environment's */
    /* Not an option: the command's words on what to do where there is no tokenizer, which is then
     * said before anything is compiled; NULL: it does without. */
    const char *needs_tokenizer;
    /* Nor these: --chat-template of the commands that have it, a file; and whether the command
     * takes a chat template, which is then read before anything is compiled. */
    const char *chat_template;
    bool needs_chat_template;
};
/* For prompts of text. */
#define XM_CLI_IDS_INSTEAD "give token ids with --ids, or put the file there"
enum { XM_CLI_N_TARGET_OPTIONS = 15 };
/* clang-format off */
#define XM_CLI_TARGET(member) offsetof(struct xm_cli_target, member)
#define XM_CLI_TARGET_ROWS \
    XM_CLI_GROUP("The model and its device", "xemoe generate model.gguf -p Hello -d GPU --kv u4 --ubatch 256"), \
    { 'm', "model",     XM_CLI_TEXT,  XM_CLI_TARGET(model),     "PATH", "a .gguf file, an .xml file, or a folder with one of them, as the first word does;\ngenerate, chat and bench also take what 'xemoe compile' wrote; default: $XM_MODEL" }, \
    { 'd', "device",    XM_CLI_TEXT,  XM_CLI_TARGET(device),    "NAME", "GPU (default), GPU.1, CPU, REFERENCE; 'xemoe devices' lists them" }, \
    { 0,   "precision", XM_CLI_TEXT,  XM_CLI_TARGET(precision), "TYPE", "element type of activations: f16 or f32; default: what suits the device" }, \
    { 0,   "ubatch",    XM_CLI_COUNT, XM_CLI_TARGET(ubatch),    "N",    "prompt tokens that go through the model at once (512)" }, \
    { 0,   "kv",        XM_CLI_TEXT,  XM_CLI_TARGET(kv),        "TYPE", "element type of the KV cache: u4 (also for i4), i8, f16 or f32; default: what suits the device" }, \
    { 0,   "cache-type-k", XM_CLI_TEXT, XM_CLI_TARGET(key_cache), "TYPE", "element type of cached keys; default: --kv. Also -ctk, and llama.cpp's names q8_0 and q4_0" }, \
    { 0,   "ctk",       XM_CLI_TEXT,  XM_CLI_TARGET(key_cache), "TYPE", NULL }, \
    { 0,   "cache-type-v", XM_CLI_TEXT, XM_CLI_TARGET(value_cache), "TYPE", "element type of cached values; default: --kv. Also -ctv" }, \
    { 0,   "ctv",       XM_CLI_TEXT,  XM_CLI_TARGET(value_cache), "TYPE", NULL }, \
    { 0,   "kv-memory", XM_CLI_TEXT,  XM_CLI_TARGET(kv_memory), "MIB",  "most memory of the KV cache; default: what is left" }, \
    { 0,   "offload",   XM_CLI_TEXT,  XM_CLI_TARGET(offload),   "N",    "percent of the experts that stay in host memory; default: those that do not fit" }, \
    { 0,   "expert-cache", XM_CLI_TEXT, XM_CLI_TARGET(expert_cache), "MIB", "device memory that caches recently used experts of those; default: what is left" }, \
    { 0,   "cache-dir", XM_CLI_TEXT,  XM_CLI_TARGET(cache_dir), "DIR",  "folder of compiled kernels; none: keep none; default: ~/.cache/xemoe" }, \
    { 0,   "json",      XM_CLI_FLAG,  XM_CLI_TARGET(json),      NULL,   "the result as one JSON object" }
/* clang-format on */
/* Members of a command's xm_cli_spec: MODEL as a word, by -m, or from the environment. */
#define XM_CLI_MODEL(offset)                                                             \
    .operand = "MODEL", .operand_offset = (offset), .operand_env = "XM_MODEL"
extern const struct xm_cli_option xm_cli_target_options[XM_CLI_N_TARGET_OPTIONS];

/* An option that sets a property. */
struct xm_cli_setting {
    const char *option, *key;
    const char *value; /* NULL: not given */
};
enum { XM_CLI_NUMBER = 24 }; /* characters that a number needs, at most */
/* Values that no device takes are mistakes of the command line: XM_EXIT_USAGE. */
int xm_cli_check_settings(const struct xm_cli_setting *settings, size_t n);
/* The same for the options of a target, but for --cache-dir. */
int xm_cli_check_target(const struct xm_cli_target *t);

struct xm_cli_model {
    struct xm_core *core;
    struct xm_compiled *compiled;
    /* its text side has been read, but for the chat template */
    struct xm_package *package;
    double load_s;
    double load_peak_rss; /* MiB, once loaded */
};

/* Reads and compiles; closes again on failure. */
int xm_cli_model_open(struct xm_cli_model *m, const struct xm_cli_target *t,
                      const struct xm_compile_options *options);
void xm_cli_model_close(struct xm_cli_model *m);
/* What --context asks for; XM_EXIT_USAGE: more positions than any model has. */
int xm_cli_check_context(uint64_t positions);
/* Whether these are more than the model was trained for, and what to say then. */
enum { XM_CLI_WARNING = 192 };
bool xm_cli_beyond_training(uint64_t positions, uint64_t trained,
                            char warning[XM_CLI_WARNING]);
struct xm_token_runner;
/* The logits of the last `wanted` tokens that were fed. NULL: the model gives fewer; the sentence
 * says so. */
const float *xm_cli_logits_of(const struct xm_token_runner *r, uint64_t wanted,
                              uint64_t *vocabulary, struct xm_error *err);
/* "GPU: <name of the chip>" */
void xm_cli_model_device(const struct xm_cli_model *m, struct xm_strbuf *out);

/* {"cl_mem": {"now": …, "peak": …, "buffers": …}, …} into an object of the result. */
void xm_cli_add_memory_kinds(struct xm_json_out *j, yyjson_mut_val *o,
                             const struct xm_memory_stats *s);

/* ---- token ids on the command line ------------------------------------------------- */

/* A list of rows. Zero-initialise. */
struct xm_cli_ids {
    struct xm_token_list *rows; /* owned */
    size_t n;
};

/* "1,2,3"; "@FILE": integers apart by space, comma or newline, or an .npy file, of which
 * "@FILE:R" takes row R. Without R a file of several rows gives them all. Each id must lie
 * below `vocabulary`, each row must hold one at least. */
int xm_cli_ids_read(const char *arg, uint64_t vocabulary, struct xm_cli_ids *out);
/* The same where one row is wanted. */
int xm_cli_ids_read_row(const char *arg, uint64_t vocabulary, struct xm_token_list *out);
void xm_cli_ids_free(struct xm_cli_ids *ids);
/* Whether they can be read, before a model is: any vocabulary will do. */
int xm_cli_ids_check(const char *arg, bool one_row);

/* The prompt of generate and verify: --ids, else the text. */
int xm_cli_prompt(const struct xm_cli_model *m, const char *ids, const char *text,
                  size_t n, struct xm_token_list *out);

/* ---- the subcommands --------------------------------------------------------------- */

int xm_cli_devices(int argc, char **argv);
int xm_cli_info(int argc, char **argv);
int xm_cli_list(int argc, char **argv);
int xm_cli_plan(int argc, char **argv);
int xm_cli_compile(int argc, char **argv);
int xm_cli_generate(int argc, char **argv);
int xm_cli_logits(int argc, char **argv);
int xm_cli_perplexity(int argc, char **argv);
int xm_cli_verify(int argc, char **argv);
int xm_cli_opt(int argc, char **argv);
int xm_cli_make_model(int argc, char **argv);
int xm_cli_chat(int argc, char **argv);
int xm_cli_bench(int argc, char **argv);
int xm_cli_benchmark_app(int argc, char **argv);

#endif
