/* SPDX-License-Identifier: Apache-2.0
 *
 * A program's steps as texts for people: kernels, weights, what is particular.
 *
 * Which kernels a step takes depends on how many tokens come, so requests of the program are fed a
 * prompt and then a token. That is meant for programs on a counting engine that keep their graph:
 * nothing is computed there.
 */
#ifndef XM_PLUGIN_GPU_DESCRIBE_H
#define XM_PLUGIN_GPU_DESCRIBE_H

#include "plugin/gpu/program.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_step_text {
    struct xm_strbuf token,
        prompt;               /* kernels, apart by spaces, for one token and for many */
    struct xm_strbuf weights; /* a line each: "[4096, 2048] u4, groups of 128"      */
    struct xm_strbuf detail;  /* of attention, experts and row chains; lines; or empty */
    struct xm_strbuf signature; /* equal in steps that do the same; without names */
    uint64_t weight_bytes;
};

struct xm_program_texts {
    struct xm_step_text *steps; /* p->n_steps */
    uint32_t n, prompt_tokens;
};

/* *out is for xm_program_texts_free, also on failure. */
enum xm_status xm_program_describe(struct xm_program *p, struct xm_program_texts *out,
                                   struct xm_error *err);
void xm_program_texts_free(struct xm_program_texts *t);

#ifdef __cplusplus
}
#endif
#endif
