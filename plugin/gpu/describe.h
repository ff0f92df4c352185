/* SPDX-License-Identifier: Apache-2.0
 *
 * Describes the steps of a program for people: kernels, weights, details.
 *
 * The kernels of a step depend on the number of tokens, so a request of the program is run with a
 * prompt and then with one token. Use it on a counting engine (runtime/counting), which computes
 * nothing, with a program that kept its graph.
 */
#ifndef XM_PLUGIN_GPU_DESCRIBE_H
#define XM_PLUGIN_GPU_DESCRIBE_H

#include "plugin/lower/program.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_step_text {
    /* names of the kernels for one token and for a prompt, separated by spaces */
    struct xm_strbuf token, prompt;
    struct xm_strbuf weights; /* one a line: "[4096, 2048] u4, groups of 128" */
    struct xm_strbuf detail;  /* lines on attention, experts or a row chain; or empty */
    /* problems that `xemoe bench --kernels` can time, one a line, without the number of tokens;
     * empty: the step has none */
    struct xm_strbuf problems;
    struct xm_strbuf signature; /* equal for steps that differ only in names      */
    uint64_t weight_bytes;
};

struct xm_program_texts {
    struct xm_step_text *steps; /* p->n_steps */
    uint32_t n, prompt_tokens;
};

/* Describes all steps of p by running a request of it. The caller frees *out with
 * xm_program_texts_free, also on failure. */
enum xm_status xm_program_describe(struct xm_program *p, struct xm_program_texts *out,
                                   struct xm_error *err);
void xm_program_texts_free(struct xm_program_texts *t);
/* Appends only the lines of xm_step_text.problems of step s, without running it. The program may be
 * of any engine, but must have kept its graph. */
void xm_step_problems(const struct xm_program *p, const struct xm_step *s,
                      struct xm_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
