/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws a compiled program in graphviz's language: the steps before the layers, one layer of each
 * kind, the steps after the layers. A box is a step with its kernels and weights, an arrow is a
 * value.
 */
#ifndef XM_PLUGIN_CLI_PICTURE_H
#define XM_PLUGIN_CLI_PICTURE_H

#include "plugin/program_view.h"

/* Draw all steps, with one layer of each kind. */
#define XM_PICTURE_OF_ALL UINT64_MAX

/* Appends the picture. `layer`: draws this layer alone; XM_PICTURE_OF_ALL: the whole program. */
void xm_picture_print(const struct xm_program_view *v, const char *title, uint64_t layer,
                      struct xm_strbuf *out);

#endif
