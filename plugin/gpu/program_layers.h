/* SPDX-License-Identifier: Apache-2.0
 *
 * The layers of a program, found in what its steps do.
 *
 *   steps:   [ before ][ layer 0 ][ layer 1 ] … [ layer n-1 ][ behind ]
 *
 * A layer has one attention. It begins behind the place, between its attention and the one before,
 * where the fewest values are alive (what goes from layer to layer is narrow, what a layer works
 * with is not), with as many products before its attention as the first layer has. Steps of a layer
 * that others read and that need no attention (rotary tables) belong before. The last layer ends
 * where it stops doing what another layer does.
 */
#ifndef XM_PLUGIN_GPU_PROGRAM_LAYERS_H
#define XM_PLUGIN_GPU_PROGRAM_LAYERS_H

#include "plugin/gpu/program.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_program_layers {
    uint32_t n;      /* layers; 0: there is no attention, all steps are "before"     */
    uint32_t *block; /* by step: 0 before, 1 + i for layer i, 1 + n behind           */
    uint32_t *kind;  /* by layer: the first layer with the same steps in this order  */
};

/* signatures: by step, everything that makes it another step than others. *out is for
 * xm_program_layers_free, also on failure. */
enum xm_status xm_program_find_layers(const struct xm_program *p,
                                      const char *const *signatures,
                                      struct xm_program_layers *out,
                                      struct xm_error *err);
void xm_program_layers_free(struct xm_program_layers *l);

/* The step that makes a value; XM_NO_VALUE: none does (an input, a constant), or the value is what
 * another is in another form. */
uint32_t xm_program_maker(const struct xm_program *p, uint32_t value);

#ifdef __cplusplus
}
#endif
#endif
