/* SPDX-License-Identifier: Apache-2.0
 *
 * A compiled model as a file (a blob): everything from which another process can make the same
 * program without running a pass.
 *
 *     device and config ─ the rewritten graph's text ─ places of its constants' bytes ─
 *     binaries of the kernels ─ bytes of constants that are in no other file
 *
 * Bytes that lie unchanged in a mapped file (a model's weights) can be referred to: path, size,
 * time of the last change, and a checksum of samples. All others are in the blob, aligned, and
 * are used in place. Weights that the device stores in a converted layout are referred to in the
 * layout of the file, and converted again on import.
 *
 * A blob is valid for the same device, driver and version of xemoe only; others refuse it with a
 * reason. Every size in it is checked before it is used, and no allocation is larger than the blob.
 * But it has machine code for the device: import only blobs from a trusted source.
 */
#ifndef XM_PLUGIN_GPU_BLOB_H
#define XM_PLUGIN_GPU_BLOB_H

#include "plugin/lower/program.h"
#include "plugin/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the program as a blob to `to`, in pieces, in order. It must have kept its graph. */
enum xm_status xm_blob_write(struct xm_program *p, const struct xm_export *to,
                             struct xm_error *err);

/* A blob that was read. Members that are not owned are views of its bytes. */
struct xm_blob {
    const struct xm_import *from;
    /* owned; the bytes of its constants lie in mappings of the blob and of other files */
    struct xm_graph *graph;
    const char *notes;
    const char *config;             /* lines "KEY value" */
    struct xm_pass_report *reports; /* owned */
    size_t n_reports;
    const uint8_t *kernels;
    uint64_t n_kernel_bytes;
};

/* Reads and checks a blob. XM_UNSUPPORTED: it was made for another device, driver or version. The
 * caller frees *out with xm_blob_free, also on failure. */
enum xm_status xm_blob_read(const struct xm_import *from,
                            const struct xm_device_info *device, struct xm_blob *out,
                            struct xm_error *err);
void xm_blob_free(struct xm_blob *b);

/* Copies the blob's options to `c`, the options of the importing process, except those that the
 * process has set. XM_INVALID: the process has set another value for an option that passes read,
 * which would need another graph. */
enum xm_status xm_blob_config(const struct xm_blob *b, struct xm_config *c,
                              struct xm_error *err);
/* Returns the binary of a kernel, *n bytes of the blob `ctx`; NULL: the blob does not have it. A
 * callback for xm_engine_offer_kernels. */
const void *xm_blob_kernel(void *ctx, const struct xm_kernel_key *key, size_t *n);

#ifdef __cplusplus
}
#endif
#endif
