/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses llama-bench's lists of option values. xemoe bench runs all combinations of them.
 *
 *     512     1,2,4     1-8  (1 2 3 … 8)     1-8+2  (1 3 5 7)     1-8*2  (1 2 4 8)
 *
 * These may be joined with commas.
 */
#ifndef XM_PLUGIN_CLI_BENCH_VALUES_H
#define XM_PLUGIN_CLI_BENCH_VALUES_H

#include "plugin/program_util/command_line.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_BENCH_MOST_VALUES = 256 };

struct xm_bench_values {
    uint64_t list[XM_BENCH_MOST_VALUES];
    size_t n;
};

/* Parses every text and appends its values, which must lie in least..XM_CLI_MOST_TOKENS.
 * XM_INVALID: the sentence names the option. */
enum xm_status xm_bench_values_read(const char *option, const struct xm_cli_texts *texts,
                                    uint64_t least, struct xm_bench_values *out,
                                    struct xm_error *err);

/* A list of texts. Zero-initialise. */
struct xm_bench_texts {
    char *list[XM_BENCH_MOST_VALUES]; /* owned */
    size_t n;
};

/* Splits every text at commas and appends the parts. A text for which `is_whole` returns true is
 * not split. NULL: splits all texts. */
enum xm_status xm_bench_texts_read(const char *option, const struct xm_cli_texts *texts,
                                   bool (*is_whole)(const char *text),
                                   struct xm_bench_texts *out, struct xm_error *err);
void xm_bench_texts_free(struct xm_bench_texts *t);

#ifdef __cplusplus
}
#endif
#endif
