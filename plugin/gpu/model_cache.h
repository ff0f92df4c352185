/* SPDX-License-Identifier: Apache-2.0
 *
 * The cache of compiled models in CACHE_DIR: blobs `<hash>.blob` beside the cached kernels.
 *
 * The hash covers all that a blob depends on: the graph's text, place and content of its constants,
 * the device, which rows have logits, and the options of compiled models. An entry refers to the
 * weights' files; a graph whose constants cannot be identified has no entry. No failure here fails
 * a compile: an entry that cannot be read is compiled again, one that cannot be written causes a
 * warning.
 */
#ifndef XM_PLUGIN_GPU_MODEL_CACHE_H
#define XM_PLUGIN_GPU_MODEL_CACHE_H

#include "plugin/cache_cipher.h"
#include "plugin/compile_options.h"
#include "plugin/lower/program.h"
#include "plugin/plugin.h"
#include "runtime/config.h"
#include "runtime/device_info.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the name of an environment variable that is set and that changes or dumps the result of
 * passes, or forces kernels (XM_SKIP, XM_STOP, XM_DUMP, XM_FORCE). Nothing made from the model may
 * then be cached for later runs. NULL: none of them is set. */
const char *xm_model_cache_obstacle(void);
/* Appends 32 hexadecimal digits: a hash of `kind` and of everything that a compiled model depends
 * on: the graph's text, place and content of its constants, options, device and versions. */
void xm_model_cache_identify(const struct xm_graph *g, const struct xm_config *config,
                             const struct xm_device_info *device, const char *kind,
                             struct xm_strbuf *out);
/* Returns the path of the file for the graph's entry, which the caller frees with xm_free. The file
 * need not exist. NULL: there is no cache, the graph cannot have an entry, or memory is out. */
char *xm_model_cache_path(const struct xm_graph *g, const struct xm_config *config,
                          const struct xm_compile_options *options,
                          const struct xm_device_info *device);
/* Opens an entry, decrypted by `cipher` if it is set. The caller closes *out with xm_import_close.
 * XM_NOT_FOUND: there is none. */
enum xm_status xm_model_cache_open(const char *path, const struct xm_cache_cipher *cipher,
                                   struct xm_import *out, struct xm_error *err);
/* Writes an entry, encrypted by `cipher` if it is set; logs a warning on failure. */
void xm_model_cache_store(const char *path, const struct xm_cache_cipher *cipher,
                          struct xm_program *p);

#ifdef __cplusplus
}
#endif
#endif
