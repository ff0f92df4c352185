/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints the results of xemoe bench in llama-bench's formats: a Markdown table, CSV, JSON, JSON
 * Lines, SQL. The fields have llama-bench's names and order; fields about the device follow them.
 */
#ifndef XM_PLUGIN_CLI_BENCH_OUT_H
#define XM_PLUGIN_CLI_BENCH_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

enum xm_bench_format {
    XM_BENCH_NONE,
    XM_BENCH_MD,
    XM_BENCH_CSV,
    XM_BENCH_JSON,
    XM_BENCH_JSONL,
    XM_BENCH_SQL
};
/* Finds the format with this name; returns false: there is none. */
bool xm_bench_format_find(const char *name, enum xm_bench_format *out);

/* Optional columns of the Markdown table, or-ed, with the condition for printing each. */
enum xm_bench_column {
    XM_BENCH_NGL = 1 << 0,     /* some device is not a CPU device         */
    XM_BENCH_THREADS = 1 << 1, /* some device is a CPU device             */
    XM_BENCH_BATCH = 1 << 2,   /* this and the following ones: the option is given */
    XM_BENCH_UBATCH = 1 << 3,
    XM_BENCH_TYPES = 1 << 4,
    XM_BENCH_DEVICE = 1 << 5
};

/* The result of one test. No text is NULL. */
struct xm_bench_result {
    const char *build, *cpu, *gpu, *backend;
    const char *model, *model_type;        /* path; "family parameters weights"      */
    const char *type_k, *type_v, *devices; /* types of the KV cache by ggml's names  */
    const char *device_name, *driver, *platform;
    const char *time; /* when the test began, RFC 3339 */
    uint64_t model_bytes, parameters;
    uint64_t n_batch, n_ubatch, n_threads; /* n_threads 0: not a CPU device          */
    uint64_t n_prompt, n_gen, n_depth;     /* in tokens                              */
    uint64_t n_parallel;                   /* texts with n_gen tokens each           */
    const uint64_t *samples_ns;            /* [n_samples] durations                  */
    size_t n_samples;
    /* set by xm_bench_sum_up: mean and standard deviation of durations and of tokens a second */
    uint64_t avg_ns, stddev_ns;
    double avg_ts, stddev_ts;
};

/* Computes the last four members from the samples. */
void xm_bench_sum_up(struct xm_bench_result *r);

/* The test's name: "pp512", "tg128", "tg128 x 4" with four texts, "pp512+tg128"; with n_depth > 0
 * followed by " @ d4096". */
enum { XM_BENCH_TEST_CHARS = 128 };
void xm_bench_test_text(const struct xm_bench_result *r, char out[XM_BENCH_TEST_CHARS]);

struct xm_bench_out {
    enum xm_bench_format format;
    unsigned columns; /* enum xm_bench_column, or-ed */
    FILE *to;
    const char *build;
    size_t line;              /* maximum width of a line; SIZE_MAX: any */
    size_t n;                 /* tests printed so far; initialise to 0               */
    struct xm_strbuf caption; /* caption of the last narrow table; initialise to zeros */
};

/* Print one result, or the end; the first result is preceded by the head. A Markdown table that is
 * wider than a line has only the columns of the test, and a caption with the contents of the
 * others. Nothing is printed without a result. xm_bench_out_end frees the members of *o.
 * XM_NO_MEMORY is the only failure; check write errors with ferror(o->to). */
enum xm_status xm_bench_out_test(struct xm_bench_out *o, const struct xm_bench_result *r,
                                 struct xm_error *err);
enum xm_status xm_bench_out_end(struct xm_bench_out *o, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
