/* SPDX-License-Identifier: Apache-2.0
 *
 * What xemoe bench prints of its tests, in llama-bench's forms: a table in Markdown, CSV, JSON, a
 * JSON object a line, SQL. Fields have the names and the order that they have there; the device's
 * facts come behind them.
 */
#ifndef XM_PLUGIN_CLI_BENCH_OUT_H
#define XM_PLUGIN_CLI_BENCH_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/util/status.h"

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
/* False: there is no such format. */
bool xm_bench_format_find(const char *name, enum xm_bench_format *out);

/* Columns of the table that are not always there, or-ed. */
enum xm_bench_column {
    XM_BENCH_NGL = 1 << 0,     /* a device is no processor */
    XM_BENCH_THREADS = 1 << 1, /* a device is one          */
    XM_BENCH_BATCH = 1 << 2,   /* the others: an option    */
    XM_BENCH_UBATCH = 1 << 3,
    XM_BENCH_TYPES = 1 << 4,
    XM_BENCH_DEVICE = 1 << 5
};

/* A test that has run. Texts are not NULL. */
struct xm_bench_result {
    const char *build, *cpu, *gpu, *backend;
    const char *model, *model_type;        /* its path; family, parameters, weights     */
    const char *type_k, *type_v, *devices; /* types of the cache by ggml's names  */
    const char *device_name, *driver, *platform;
    const char *time; /* when it began, RFC 3339 */
    uint64_t model_bytes, parameters;
    uint64_t n_batch, n_ubatch, n_threads; /* threads: 0: no processor           */
    uint64_t n_prompt, n_gen, n_depth;
    const uint64_t *samples_ns;
    size_t n_samples;
    /* Of the samples: xm_bench_sum_up. */
    uint64_t avg_ns, stddev_ns;
    double avg_ts, stddev_ts; /* tokens a second */
};

void xm_bench_sum_up(struct xm_bench_result *r);

/* "pp512", "tg128", "pp512+tg128", each with " @ d4096" behind it where the cache is filled. */
enum { XM_BENCH_TEST_CHARS = 96 };
void xm_bench_test_text(const struct xm_bench_result *r, char out[XM_BENCH_TEST_CHARS]);

struct xm_bench_out {
    enum xm_bench_format format;
    unsigned columns; /* enum xm_bench_column, or-ed     */
    FILE *to;
    const char *build;
    size_t n; /* tests that have been printed; 0 */
};

/* XM_NO_MEMORY, or what was written is out; whether all of it could be, ferror knows. */
enum xm_status xm_bench_out_begin(struct xm_bench_out *o, struct xm_error *err);
enum xm_status xm_bench_out_test(struct xm_bench_out *o, const struct xm_bench_result *r,
                                 struct xm_error *err);
enum xm_status xm_bench_out_end(struct xm_bench_out *o, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
