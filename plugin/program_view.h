/* SPDX-License-Identifier: Apache-2.0
 *
 * A compiled program for display: names and texts of its steps, values and layers.
 *
 *   steps:   [ block 0: before ][ block 1: layer 0 ] … [ block n: layer n-1 ][ block n+1: behind ]
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
    uint32_t root;    /* the value whose bytes it is: itself, when it is no other name */
    /* the step; XM_VIEW_NONE: none makes it (an input, a constant), or it is what another value
     * is in another form */
    uint32_t maker;
    bool is_input;
    const char *input, *output; /* of a root: names of its ports; NULL: it has none    */
};

struct xm_step_view {
    const char *op, *name; /* of the graph's node */
    bool on_host;          /* no kernel does it   */
    const uint32_t *in;    /* values that it reads */
    uint32_t n_in;
    uint32_t block;
    const char *token,
        *prompt;         /* kernels, apart by spaces, for one token and for many      */
    const char *weights; /* a line each: "[4096, 2048] u4, groups of 128"             */
    const char *detail;  /* of attention, experts and row chains; lines; or empty     */
    /* the lines with which `xemoe bench --kernels` measures it, without the tokens (T=) */
    const char *problems;
    uint64_t weight_bytes;
};

struct xm_program_view {
    struct xm_arena arena; /* holds all members below */
    const char *device;    /* the device's name       */
    struct xm_step_view *steps;
    struct xm_value_view *values;
    uint32_t n_steps, n_values;
    uint32_t n_layers;    /* 0: there is no attention, all steps are "before"        */
    uint32_t *layer_kind; /* by layer: the first one with the same steps in this order */
    /* that the kernels for many are said of */
    uint32_t prompt_tokens;
};

/* Compiles a copy of `g` as the device's plugin would, on an engine that only counts: no weight is
 * read, no kernel built. *out is for xm_program_view_free, also on failure. */
enum xm_status xm_program_view(const struct xm_device_info *info,
                               const struct xm_config *config, const struct xm_graph *g,
                               struct xm_program_view *out, struct xm_error *err);
void xm_program_view_free(struct xm_program_view *v);

#ifdef __cplusplus
}
#endif
#endif
