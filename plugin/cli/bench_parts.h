/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside xemoe bench: what its options say, and the run of one test.
 */
#ifndef XM_PLUGIN_CLI_BENCH_PARTS_H
#define XM_PLUGIN_CLI_BENCH_PARTS_H

#include "plugin/cli/bench_out.h"
#include "plugin/cli/bench_values.h"
#include "plugin/cli/cli.h"
#include "plugin/cli/model_id.h"
#include "runtime/device_info.h"

/* A type of the KV cache. */
struct xm_bench_type {
    const char *ggml; /* as llama-bench names it                  */
    const char *ours; /* as KEY_CACHE_PRECISION does              */
};
extern const struct xm_bench_type xm_bench_known_types[];
extern const size_t xm_bench_n_known_types;

enum { XM_BENCH_MOST_RULES = 24 };
enum { XM_BENCH_N_BATCH = 2048, XM_BENCH_N_UBATCH = 512 }; /* where nothing is said */

struct xm_bench_args {
    struct xm_cli_target target; /* first; each test has model, device, ubatch, cache  */
    struct xm_cli_texts model_texts, device_texts, prompt_texts, gen_texts, pair_texts;
    struct xm_cli_texts depth_texts, batch_texts, ubatch_texts, type_k_texts,
        type_v_texts;
    const char *format_name, *format_err_name;
    uint64_t reps, delay;
    bool no_warmup, progress;
    struct xm_cli_texts ruled[XM_BENCH_MOST_RULES]; /* of options in bench_rules.c */

    /* Values read from the texts above. */
    struct xm_bench_texts models, devices;
    struct xm_bench_values prompts, gens, pairs, depths, batches, ubatches;
    struct xm_bench_types {
        /* NULL: what suits the device */
        const struct xm_bench_type *list[XM_BENCH_MOST_VALUES];
        size_t n;
    } types_k, types_v;
    enum xm_bench_format format, format_err;
};

/* Reads the command line; *done as xm_cli_begin has it. */
int xm_bench_args_read(int argc, char **argv, struct xm_bench_args *a, bool *done);
void xm_bench_args_free(struct xm_bench_args *a);

/* ---- options of llama-bench that there is one way of here (bench_rules.c) ---- */

/* Their rows for the command line; how many. */
size_t xm_bench_rules_options(struct xm_cli_option out[XM_BENCH_MOST_RULES]);
/* Whether what was given is what is done anyway. */
int xm_bench_rules_check(const struct xm_bench_args *a);
/* The same of those that are about a processor's threads, for a device. */
int xm_bench_rules_check_threads(const struct xm_bench_args *a,
                                 const struct xm_device_info *d);
/* Names those of them that were given, and mean nothing to a device that is no processor, on
 * standard error. */
void xm_bench_rules_say_ignored(const struct xm_bench_args *a);
/* A copy of argv whose words of one dash and several letters are the options' long names; for
 * xm_free. NULL: out of memory. */
char **xm_bench_rules_long_names(int argc, char **argv);

/* ---- a test (bench_run.c) ---- */

struct xm_bench_device {
    const char *name; /* as given; NULL: the default */
    struct xm_device_info info;
    bool is_reference; /* of info there is only what it has in common with processors */
};

/* One of all combinations. */
struct xm_bench_test {
    const char *model;
    const struct xm_bench_device *device;
    const struct xm_bench_type *type_k, *type_v; /* NULL: what suits the device */
    uint64_t batch, ubatch, depth, n_prompt, n_gen;
    size_t number, of; /* from 1 */
};

/* The model that is loaded, which the next test may use, too. Zero-initialise. */
struct xm_bench_bed {
    struct xm_cli_model model;
    struct xm_bench_test loaded; /* what it was loaded for; model NULL: nothing was */
    int code;                    /* how that went */
    struct xm_model_id id;
};

/* Opens the test's model, unless it is the one that was opened last; returns the exit code of that
 * opening. */
int xm_bench_load(struct xm_bench_bed *bed, const struct xm_bench_args *a,
                  const struct xm_bench_test *t);
void xm_bench_unload(struct xm_bench_bed *bed);

/* Runs the test a->reps times; samples_ns: [a->reps] durations. Returns an exit code. */
int xm_bench_run(const struct xm_bench_bed *bed, const struct xm_bench_args *a,
                 const struct xm_bench_test *t, uint64_t *samples_ns);

#endif
