/* SPDX-License-Identifier: Apache-2.0
 *
 * A compiled program for display: names and texts of its steps, values and layers.
 *
 *   steps:   [ block 0: before ][ block 1: layer 0 ] … [ block n: layer n-1 ][ block n+1: after
 * ]
 */
#ifndef XM_PLUGIN_PROGRAM_VIEW_H
#define XM_PLUGIN_PROGRAM_VIEW_H

#include "runtime/config.h"
#include "runtime/engine.h"
#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_VIEW_NONE = UINT32_MAX };

struct xm_value_view {
    const char *type; /* "f32[batch,tokens,256]"                                    */
    /* the value that owns the bytes: itself, unless it is a view of another value */
    uint32_t root;
    /* the step that computes the value; XM_VIEW_NONE: an input, a constant, or another form of a
     * value */
    uint32_t maker;
    bool is_input;
    /* names of the root's ports; NULL: it is no input or result */
    const char *input, *output;
};

struct xm_step_view {
    const char *op, *name; /* of the graph's node */
    bool on_host;          /* computed by the host, not by a kernel */
    const uint32_t *in;    /* indices of the values that it reads */
    uint32_t n_in;
    uint32_t block;
    /* names of its kernels, separated by spaces, for one token and for many tokens */
    const char *token, *prompt;
    const char *weights; /* one line for each weight: "[4096, 2048] u4, groups of 128" */
    const char *detail;  /* lines about attention, experts or row chains; may be empty */
    /* the input lines with which `xemoe bench --kernels` measures the step, without the tokens
     * (T=) */
    const char *problems;
    uint64_t weight_bytes;
};

struct xm_program_view {
    struct xm_arena arena; /* holds all members below */
    const char *device;    /* the device's name       */
    struct xm_step_view *steps;
    struct xm_value_view *values;
    uint32_t n_steps, n_values;
    uint32_t n_layers; /* 0: the model has no attention; then all steps are in block 0 */
    /* for each layer: the first layer with the same steps in this order */
    uint32_t *layer_kind;
    /* the number of tokens for which steps[].prompt was determined */
    uint32_t prompt_tokens;
};

/* Compiles a copy of `g` as the device's plugin would, on an engine that only counts memory: no
 * weight is read and no kernel is built. The caller frees *out with xm_program_view_free, also on
 * failure. */
enum xm_status xm_program_view(const struct xm_device_info *info,
                               const struct xm_config *config, const struct xm_graph *g,
                               struct xm_program_view *out, struct xm_error *err);
void xm_program_view_free(struct xm_program_view *v);

#ifdef __cplusplus
}
#endif
#endif
