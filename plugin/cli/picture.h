/* SPDX-License-Identifier: Apache-2.0
 *
 * A compiled program as a picture, in graphviz's language: the steps before the layers, one layer
 * of each kind, the steps behind. A box is a step with its kernels and weights, an arrow a value.
 */
#ifndef XM_PLUGIN_CLI_PICTURE_H
#define XM_PLUGIN_CLI_PICTURE_H

#include "plugin/gpu/describe.h"
#include "plugin/gpu/program_layers.h"

/* All layers, one of each kind. */
#define XM_PICTURE_OF_ALL UINT64_MAX

struct xm_picture {
    const struct xm_program *program;
    const struct xm_program_texts *texts;
    const struct xm_program_layers *layers;
    const char *title;  /* of the model  */
    const char *device; /* its name      */
};

/* layer: that one alone, or XM_PICTURE_OF_ALL. */
void xm_picture_print(const struct xm_picture *picture, uint64_t layer,
                      struct xm_strbuf *out);

#endif
