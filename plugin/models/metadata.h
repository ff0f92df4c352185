/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads decoders from the metadata of GGUF files.
 */
#ifndef XM_PLUGIN_MODELS_METADATA_H
#define XM_PLUGIN_MODELS_METADATA_H

#include <stddef.h>

#include "plugin/models/decoder.h"
#include "plugin/readers/gguf.h"

struct xm_metadata_key {
    const char *key; /* name without "<architecture>." */
    bool is_float, is_needed;
    size_t offset; /* in struct xm_decoder */
};
/* The rows of metadata.def, ended by a NULL key. */
extern const struct xm_metadata_key xm_metadata_keys[];

/* Reads the decoder that a file describes, with its set of tensors; its layers are allocated in
 * `arena`. The file has each tensor that the decoder needs, and no tensor that is unknown.
 * XM_UNSUPPORTED: the architecture, or a property of it, is not known here. */
enum xm_status xm_metadata_read(const struct xm_gguf *g, struct xm_arena *arena,
                                struct xm_decoder *out, struct xm_error *err);

/* Private to metadata*.c: fills in the decoder's sets of tensors that the file has, and the
 * properties that follow from them: the vocabulary size, and the layers whose keys are also their
 * values. */
enum xm_status xm_metadata_read_tensors(const struct xm_gguf *g, struct xm_decoder *d,
                                        struct xm_error *err);

/* Returns the tensor "<name>.scale" that belongs to a matrix "<name>.weight": products with the
 * matrix are multiplied by it. It is [1], or [E] for experts. NULL: there is none, or it is a row
 * of tensors.def. */
const struct xm_gguf_tensor *xm_metadata_find_factor(const struct xm_gguf *g,
                                                     const struct xm_decoder *d,
                                                     enum xm_decoder_tensor t,
                                                     uint32_t layer);

#endif
