/* SPDX-License-Identifier: Apache-2.0
 *
 * Models that were compiled before (CACHE_DIR), as blobs: `<hash>.blob` beside the kernels.
 *
 * The hash is of all that the blob depends on: the graph's text, where its constants are and what
 * is there, the device, which rows have logits, and the options of programs. An entry refers to
 * the weights' files; a graph that cannot be told from another one has no entry. As with kernels
 * nothing here fails a compile: what cannot be read is compiled, what cannot be written is a
 * warning.
 */
#ifndef XM_PLUGIN_GPU_MODEL_CACHE_H
#define XM_PLUGIN_GPU_MODEL_CACHE_H

#include "plugin/cache_cipher.h"
#include "plugin/compile_options.h"
#include "plugin/gpu/program.h"
#include "plugin/plugin.h"
#include "runtime/config.h"
#include "runtime/device_info.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The entry's file for xm_free; NULL: there is no folder, or no memory. */
char *xm_model_cache_path(const struct xm_graph *g, const struct xm_config *config,
                          const struct xm_compile_options *options,
                          const struct xm_device_info *device);
/* An entry, decrypted where there is a cipher, for xm_import_close. XM_NOT_FOUND: none. */
enum xm_status xm_model_cache_open(const char *path, const struct xm_cache_cipher *cipher,
                                   struct xm_import *out, struct xm_error *err);
void xm_model_cache_store(const char *path, const struct xm_cache_cipher *cipher,
                          struct xm_program *p);

#ifdef __cplusplus
}
#endif
#endif
