/* SPDX-License-Identifier: Apache-2.0
 *
 * Divides the steps of a program into decoder layers, for pictures and tables.
 *
 *   steps:   [ before ][ layer 0 ][ layer 1 ] … [ layer n-1 ][ behind ]
 *
 * A layer has one step of attention. The boundary between two layers is searched between their
 * steps of attention, at the point where the fewest values are alive: only the residual stream
 * passes from layer to layer. A layer has at most as many steps that read weights before its
 * attention as layer 0 (the products q, k and v).
 * Steps that do not depend on attention and that several layers read (rotary tables) are put before
 * layer 0. The last layer ends where its steps differ from those of another layer.
 */
#ifndef XM_PLUGIN_LOWER_PROGRAM_LAYERS_H
#define XM_PLUGIN_LOWER_PROGRAM_LAYERS_H

#include "plugin/lower/program.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_program_layers {
    uint32_t n;      /* layers; 0: there is no attention, all steps are "before"     */
    uint32_t *block; /* by step: 0 before, 1 + i for layer i, 1 + n behind           */
    uint32_t *kind;  /* by layer: the first layer with the same steps in this order  */
};

/* Fills *out. signatures[step]: a text that is equal for steps that differ only in names (struct
 * xm_step_text).
 * The caller frees *out with xm_program_layers_free, also on failure. */
enum xm_status xm_program_find_layers(const struct xm_program *p,
                                      const char *const *signatures,
                                      struct xm_program_layers *out,
                                      struct xm_error *err);
void xm_program_layers_free(struct xm_program_layers *l);

/* Returns the step that computes a value; XM_NO_VALUE: the value is an input, a constant, or a copy
 * of another value in another form of activations. */
uint32_t xm_program_maker(const struct xm_program *p, uint32_t value);

#ifdef __cplusplus
}
#endif
#endif
