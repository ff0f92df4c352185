/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside xemoe bench: its options, and the run of one test.
 */
#ifndef XM_PLUGIN_CLI_BENCH_PARTS_H
#define XM_PLUGIN_CLI_BENCH_PARTS_H

#include "plugin/cli/bench_out.h"
#include "plugin/cli/bench_values.h"
#include "plugin/cli/cli.h"
#include "plugin/cli/model_id.h"
#include "runtime/device_info.h"

enum { XM_BENCH_MOST_RULES = 24 };
/* Defaults of -b and -ub, in tokens. */
enum { XM_BENCH_N_BATCH = 2048, XM_BENCH_N_UBATCH = 512 };

struct xm_bench_args {
    /* first; each test overrides model, device, ubatch, cache */
    struct xm_cli_target target;
    struct xm_cli_texts model_texts, device_texts, prompt_texts, gen_texts, pair_texts;
    struct xm_cli_texts parallel_texts, depth_texts, batch_texts, ubatch_texts,
        type_k_texts, type_v_texts;
    const char *format_name, *format_err_name;
    uint64_t reps, delay;
    bool no_warmup, progress;
    bool kernels, sampling; /* handled earlier by xm_cli_bench; rows only for the help */
    /* values of the options in bench_rules.c */
    struct xm_cli_texts ruled[XM_BENCH_MOST_RULES];

    /* The values parsed from the texts above. */
    struct xm_bench_texts models, devices;
    struct xm_bench_texts types_k, types_v; /* empty: the device's default */
    struct xm_bench_values prompts, gens, parallels, pairs, depths, batches, ubatches;
    enum xm_bench_format format, format_err;
};

/* Parses the command line; the result and *done are those of xm_cli_begin. */
int xm_bench_args_read(int argc, char **argv, struct xm_bench_args *a, bool *done);
void xm_bench_args_free(struct xm_bench_args *a);

/* ---- options of llama-bench for which xemoe has a single value (bench_rules.c) ---- */

/* Writes the rows of these options into `out`; returns their number. */
size_t xm_bench_rules_options(struct xm_cli_option out[XM_BENCH_MOST_RULES]);
/* XM_EXIT_USAGE: an option was given another value than xemoe's. */
int xm_bench_rules_check(const struct xm_bench_args *a);
/* As xm_bench_rules_check, for the options about CPU threads, for one device. */
int xm_bench_rules_check_threads(const struct xm_bench_args *a,
                                 const struct xm_device_info *d);
/* Prints on standard error which of the given options about CPU threads a device ignores. */
void xm_bench_rules_say_ignored(const struct xm_bench_args *a);
/* Returns a copy of argv in which llama-bench's options with one dash and several letters ("-ngl")
 * are replaced by their long names. The caller frees it with xm_free. NULL: out of memory. */
char **xm_bench_rules_long_names(int argc, char **argv);

/* ---- a test (bench_run.c) ---- */

struct xm_bench_device {
    const char *name; /* as given; NULL: the default device */
    struct xm_device_info info;
    /* the device REFERENCE: only info's members about the host are set */
    bool is_reference;
};

/* One combination of all option values. */
struct xm_bench_test {
    const char *model;
    const struct xm_bench_device *device;
    const char *type_k, *type_v;                    /* NULL: the device's default */
    uint64_t batch, ubatch, depth, n_prompt, n_gen; /* in tokens */
    uint64_t n_parallel; /* texts that decode n_gen tokens each */
    size_t number, of;   /* test `number` (from 1) of `of` */
};

/* The loaded model, which consecutive tests share. Zero-initialise. */
struct xm_bench_bed {
    struct xm_cli_model model;
    struct xm_bench_test loaded; /* the test it was loaded for; model NULL: none */
    int code;                    /* exit code of loading */
    struct xm_model_id id;
};

/* Loads the test's model, unless the loaded model can be used; returns an exit code. */
int xm_bench_load(struct xm_bench_bed *bed, const struct xm_bench_args *a,
                  const struct xm_bench_test *t);
void xm_bench_unload(struct xm_bench_bed *bed);

/* Runs the test a->reps times and fills samples_ns[a->reps]. Returns an exit code. */
int xm_bench_run(const struct xm_bench_bed *bed, const struct xm_bench_args *a,
                 const struct xm_bench_test *t, uint64_t *samples_ns);

/* ---- rates stored for forecasts (bench_rates.c) ---- */

/* The longest prompt and the most generated tokens measured for a model on a device, both at depth
 * 0. */
struct xm_bench_rates {
    uint64_t n_prompt, n_gen; /* 0: not measured yet */
    double prompt_s, token_s;
};
void xm_bench_note_rates(struct xm_bench_rates *r, const struct xm_bench_test *t,
                         double seconds);
/* Stores the rates of the device of test t, if the model ran in the way that forecasts assume: with
 * the device's default settings, warmed up, and completely on the device. Failures are ignored. */
void xm_bench_keep_rates(const struct xm_bench_bed *bed, const struct xm_bench_args *a,
                         const struct xm_bench_test *t, const struct xm_bench_rates *r);

#endif
