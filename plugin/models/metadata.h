/* SPDX-License-Identifier: Apache-2.0
 *
 * Decoders in the metadata of GGUF files.
 */
#ifndef XM_PLUGIN_MODELS_METADATA_H
#define XM_PLUGIN_MODELS_METADATA_H

#include <stddef.h>

#include "plugin/models/decoder.h"
#include "plugin/readers/gguf.h"

struct xm_metadata_key {
    const char *key; /* without the architecture's name */
    bool is_float, is_needed;
    size_t offset; /* in struct xm_decoder */
};
/* Those of metadata.def; a NULL key ends them. */
extern const struct xm_metadata_key xm_metadata_keys[];

/* The decoder that a file describes, with the tensors that it has; its layers are in `arena`. It
 * is whole: each tensor it needs is in the file, and the file has none that it does not know.
 * XM_UNSUPPORTED: an architecture, or something of one, that is not known here. */
enum xm_status xm_metadata_read(const struct xm_gguf *g, struct xm_arena *arena,
                                struct xm_decoder *out, struct xm_error *err);

/* Inside (metadata_tensors.c): the decoder's sets of tensors, those that the file has, and what
 * follows from them: the vocabulary, layers whose keys are their values. */
enum xm_status xm_metadata_read_tensors(const struct xm_gguf *g, struct xm_decoder *d,
                                        struct xm_error *err);

/* "<name>.scale" beside a matrix "<name>.weight", which products with the matrix are multiplied by:
 * [1], or [E] of experts. NULL: there is none, or it is a tensor of the decoder's own. */
const struct xm_gguf_tensor *xm_metadata_find_factor(const struct xm_gguf *g,
                                                     const struct xm_decoder *d,
                                                     enum xm_decoder_tensor t,
                                                     uint32_t layer);

#endif
